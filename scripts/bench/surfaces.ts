import { Agent, request } from "undici";
import { pin, startChild } from "./children.ts";
import { endlessPrompt } from "./gateway.ts";
import { format, type Measured } from "./goals.ts";
import { median, runConcurrently } from "./measure.ts";
import { threadsMsOf } from "./process-usage.ts";
import { prompt } from "./prompt.ts";
import { openStack } from "./stack.ts";

/**
 * Processes of one code differ: V8 compiles each by what it sees first. Of seventeen, a stored response took 1.06 to 1.18 chats,
 * so two runs of three each were 0.12 apart.
 */
const processes = 7;
/**
 * Rounds of each process. Many short ones: a machine that is not ours alone has half its speed for some seconds, which is to
 * fall on all surfaces.
 */
const rounds = { json: 24, streams: 8 };
/**
 * Enough to keep the API busy on every surface. With 32 it waits idle for the writes of stored responses, a third of the time,
 * and pays for waking up.
 */
const atOnce = 128;
/** Calls of one measurement. */
const calls = { json: 500, streams: 100 };
/** Calls before anything is measured. */
const warmUp = { json: 6_000, streams: 300 };

const anchor = "/v1/chat/completions";
/** The surfaces of other vendors' clients, after the one that they are held against: what each asks for, and where. */
const surfaces = {
  [anchor]: (content: string) => ({ path: anchor, messages: [{ role: "user", content }] }),
  "/v1/responses": (content: string) => ({ path: "/v1/responses", input: [{ role: "user", content }] }),
  "/v1/responses, `store: false`": (content: string) => ({
    path: "/v1/responses",
    input: [{ role: "user", content }],
    store: false,
  }),
  "/v1/messages": (content: string) => ({
    path: "/v1/messages",
    messages: [{ role: "user", content }],
    max_tokens: 1_000,
  }),
} as const;
type Surface = keyof typeof surfaces;
const names = Object.keys(surfaces) as Surface[]; // the literal above has no other keys

type Kind = keyof typeof prompts;
type Target = { url: string; headers: Record<string, string>; pid: number | undefined; dispatcher: Agent };
/** Processor time of a call in ms: one figure a round. */
type Figures = Record<Kind, Record<Surface, number[]>>;

const prompts = { json: prompt, streams: endlessPrompt };

/**
 * The API's processor time of a call by each surface, for the same question to the same model; that of the store and of Redis
 * is not counted. They take turns; a round's calls are compared with those of the same round. Responses are stored unless they
 * ask not to be, as OpenAI's are. Generator and upstream have one core, the API the other.
 */
export async function surfacesBench(): Promise<Measured[]> {
  pin(process.pid, 0);
  const upstream = await startChild("./children/upstream.ts", { core: 0 });
  const env = { EDGE_BASE_URL: `${upstream.ready.url}/v1`, EDGE_MODEL: "bench" };
  const figures: Figures = { json: noFigures(), streams: noFigures() };
  try {
    for (let turn = 0; turn < processes; turn += 1) {
      const stack = await openStack({ env, apiCore: 1 });
      const dispatcher = new Agent({ connections: 256 });
      try {
        const { url, headers, api } = stack;
        await measureSurfaces({ url, headers, pid: api.process.pid, dispatcher }, figures);
      } finally {
        await dispatcher.close();
        await stack.close();
      }
    }
  } finally {
    pin(process.pid, "any"); // what other benches start would inherit it
    await upstream.stop();
  }
  return (["json", "streams"] as const).flatMap((kind) => toLines(kind, figures[kind]));
}

const noFigures = () => Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Surface, number[]>; // of all

/** Adds the figures of one process. */
async function measureSurfaces(target: Target, figures: Figures): Promise<void> {
  for (const kind of ["json", "streams"] as const) {
    const measure = async (name: Surface, count: number) => {
      const before = await threadsMsOf(target.pid);
      await runConcurrently(count, atOnce, () => callOnce(target, name, prompts[kind], kind === "streams"));
      return ((await threadsMsOf(target.pid)) - before) / count;
    };
    for (const name of names) await measure(name, warmUp[kind]);
    for (let round = 0; round < rounds[kind]; round += 1)
      for (const name of round % 2 === 0 ? names : names.toReversed())
        figures[kind][name].push(await measure(name, calls[kind]));
  }
}

function toLines(kind: Kind, cpu: Record<Surface, number[]>): Measured[] {
  return names
    .filter((name) => name !== anchor)
    .map((name) => ({
      what: `${name} ${kind === "json" ? "JSON" : "streams"}, CPU a call, ${atOnce} at once`,
      anchor: `${anchor} ${format(median(cpu[anchor]))} ms`,
      product: `${format(median(cpu[name]))} ms`,
      value: median(cpu[name].map((one, round) => one / (cpu[anchor][round] ?? Number.NaN))),
      must: 1.15,
      aim: 1,
      isMoreBetter: false,
      unit: "×",
    }));
}

async function callOnce({ url, headers, dispatcher }: Target, name: Surface, prompt: string, stream: boolean) {
  const { path, ...asked } = surfaces[name](prompt);
  const body = JSON.stringify({ model: "bench", ...asked, stream });
  const response = await request(`${url}${path}`, { method: "POST", headers, body, dispatcher });
  const text = await response.body.text();
  if (response.statusCode !== 200 || !text.includes("word")) throw new Error(`${name} answered ${text}`);
}
