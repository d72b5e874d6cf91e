import { setTimeout as delay } from "node:timers/promises";
import { Agent, request } from "undici";
import { apiFlags } from "../start/node-flags.ts";
import { pin, startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { median, percentile, runConcurrently, runOpenLoop } from "./measure.ts";
import { cpuMsOf, memoryOf } from "./process-usage.ts";
import { prompt } from "./prompt.ts";
import { openStack, type Stack } from "./stack.ts";

/**
 * Processes of each arm, one after the other: two of the same flags may differ by as much as two flags do. Against the same
 * choice three processes had 1.13 times as much, and six 1.02.
 */
const processes = 5;
const rounds = 4;
/** Calls of each arm before anything is measured, and of one measurement; all 32 at once. */
const warmUpCalls = 8_000;
const calls = 2_000;
const steady = { perSecond: 200, seconds: 3 };
/** Streams that are held, and when their memory is read, in ms: they end after 8 s. */
const held = { streams: 500, readAfterMs: 6_000 };
/** After this time without a call V8 would have shrunk the heap, in ms. */
const QUIET_MS = 60_000;

type Samples = Record<keyof typeof columns, number[]>;
/**
 * What is compared, and what each of its processes measured: the median of its rounds. Of the processor time of a call all
 * rounds are kept: the machine's speed changes within minutes, so each is compared with those of the same round.
 */
type Choice = { name: string; flags: readonly string[]; args: string[]; samples: Samples; steadyRounds: number[] };
type Arm = { stack: Stack; samples: Samples };
const columns = {
  busyCpu: { label: "CPU a call, 32 at once", unit: "ms" },
  steadyCpu: { label: `CPU a call, ${steady.perSecond}/s`, unit: "ms" },
  p50: { label: `p50, ${steady.perSecond}/s`, unit: "ms" },
  p99: { label: `p99, ${steady.perSecond}/s`, unit: "ms" },
  streamKb: { label: "held stream", unit: "KB" },
  heldMb: { label: "with streams held", unit: "MB" },
  burst: { label: "calls/s after a quiet minute", unit: "" },
} as const;
const keys = Object.keys(columns) as (keyof typeof columns)[]; // the literal above has no other keys
const noSamples = () => Object.fromEntries(keys.map((key) => [key, [] as number[]])) as Samples;

/**
 * Node's flags of the API: APIs with all of them beside APIs without one of them each, and without any. They take turns.
 * The line that is held to a goal is the processor time of a call; the table says the rest.
 */
export async function flagsBench(): Promise<Measured[]> {
  const without = (left: string) => apiFlags.filter((flag) => flag !== left);
  const choices: Choice[] = [
    { name: "all", flags: apiFlags, args: [] },
    ...apiFlags.map((left) => ({ name: `without ${left}`, flags: without(left), args: [] })),
    { name: "code compiled as late as by default", flags: apiFlags, args: ["compile-late"] },
    { name: "none", flags: [], args: ["compile-late"] },
  ].map((choice) => ({ ...choice, samples: noSamples(), steadyRounds: [] }));
  pin(process.pid, 0);
  const upstream = await startChild("./children/upstream.ts", { core: 0 });
  const dispatcher = new Agent({ connections: held.streams, bodyTimeout: 0, headersTimeout: 0 });
  try {
    for (let at = 0; at < processes; at += 1)
      await measureProcesses(choices, { upstream: `${upstream.ready.url}/v1`, dispatcher });
  } finally {
    pin(process.pid, "any"); // what other benches start would inherit it
    await dispatcher.destroy();
    await upstream.stop();
  }
  console.log(toTable(choices));
  return toLines(choices);
}

/** Measures one process of each choice. */
async function measureProcesses(choices: readonly Choice[], given: { upstream: string; dispatcher: Agent }) {
  const env = { EDGE_BASE_URL: given.upstream, EDGE_MODEL: "bench" };
  const arms: Arm[] = [];
  try {
    for (const { flags, args } of choices) {
      const stack = await openStack({ env, apiCore: 1, apiFlags: flags, apiArgs: args });
      arms.push({ stack, samples: noSamples() });
    }
    await measure(arms, given.dispatcher);
  } finally {
    await Promise.all(arms.map(({ stack }) => stack.close()));
  }
  for (const [at, { samples, steadyRounds }] of choices.entries()) {
    for (const key of keys) samples[key].push(median(arms[at]?.samples[key] ?? []));
    steadyRounds.push(...(arms[at]?.samples.steadyCpu ?? []));
  }
}

async function measure(arms: readonly Arm[], dispatcher: Agent): Promise<void> {
  const chat = ({ stack }: Arm) => chatOnce(stack, dispatcher);
  for (const arm of arms) await runConcurrently(warmUpCalls, 32, () => chat(arm));
  for (let round = 0; round < rounds; round += 1) {
    for (const arm of round % 2 === 0 ? arms : arms.toReversed()) {
      const { samples, stack } = arm;
      const cpu = () => cpuMsOf(stack.api.process.pid);
      const idle = await cpu();
      await runConcurrently(calls, 32, () => chat(arm));
      samples.busyCpu.push(((await cpu()) - idle) / calls);
      const before = await cpu();
      const latencies = await runOpenLoop({ ...steady, seed: round + 1, call: () => chat(arm) });
      samples.steadyCpu.push(((await cpu()) - before) / latencies.length);
      samples.p50.push(percentile(latencies, 0.5));
      samples.p99.push(percentile(latencies, 0.99));
    }
  }
  await delay(QUIET_MS);
  for (const arm of arms) arm.samples.burst.push((calls / (await runConcurrently(calls, 32, () => chat(arm)))) * 1_000);
  for (const arm of arms) await holdStreams(arm, dispatcher);
}

/** What held streams take of an API that has been busy. */
async function holdStreams({ stack, samples }: Arm, dispatcher: Agent): Promise<void> {
  const resident = async () => (await memoryOf(stack.api.process.pid)).residentMb;
  const before = await resident();
  const streams = Promise.all(
    Array.from({ length: held.streams }, () =>
      chatOnce(stack, dispatcher, { content: `${prompt} slowly`, stream: true }),
    ),
  );
  const [during] = await Promise.all([delay(held.readAfterMs).then(resident), streams]);
  samples.heldMb.push(during);
  samples.streamKb.push(((during - before) * 1_024) / held.streams);
}

async function chatOnce(
  { url, headers }: Stack,
  dispatcher: Agent,
  { content, stream } = { content: prompt, stream: false },
): Promise<number> {
  const startedAt = performance.now();
  const body = JSON.stringify({ messages: [{ role: "user", content }], stream });
  const response = await request(`${url}/ai/chat`, { method: "POST", headers, body, dispatcher });
  const text = await response.body.text();
  if (response.statusCode !== 200 || !text.includes("word"))
    throw new Error(`responded ${response.statusCode}: ${text}`);
  return performance.now() - startedAt;
}

/** Of each choice the middle one of its processes, and in brackets the lowest and the highest. */
function toTable(choices: readonly Choice[]): string {
  const head = ["flags", ...keys.map((key) => `${columns[key].label}${columns[key].unit && `, ${columns[key].unit}`}`)];
  const show = (list: readonly number[]) =>
    `${format(median(list))} (${format(Math.min(...list))}-${format(Math.max(...list))})`;
  const rows = choices.map(({ name, samples }) => [name, ...keys.map((key) => show(samples[key]))]);
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** The processor time of a call, each choice against all flags. */
function toLines([all, ...others]: readonly Choice[]): Measured[] {
  if (all === undefined) return [];
  const { steadyRounds: product } = all;
  return others.map(({ name, steadyRounds: anchor }) => {
    return {
      what: `CPU of a call at ${steady.perSecond}/s, all of the API's flags against ${name}`,
      anchor: `${format(median(anchor))} ms`,
      product: `${format(median(product))} ms`,
      value: median(product.map((one, round) => one / (anchor[round] ?? Number.NaN))),
      must: 1.1,
      aim: 1,
      isMoreBetter: false,
      unit: "×",
    };
  });
}
