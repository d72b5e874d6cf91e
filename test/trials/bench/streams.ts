import { setTimeout as delay } from "node:timers/promises";
import { Agent, request } from "undici";
import { type Child, startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { runConcurrently } from "./measure.ts";
import { residentMb } from "./process-usage.ts";
import { openStack, type Stack } from "./stack.ts";

const STREAMS = 500;
const SECONDS = 30;
const WORDS_A_SECOND = 20;
/** Streams that are held while they say a word a second. */
const HELD = 1_000;
const HELD_SECONDS = 15;
const LEAVING = 200;
/** Streams before anything is measured. */
const WARM_UP = 1_500;
/** Longest wait for the upstream calls of those who left, in ms. */
const FREE_TIMEOUT_MS = 10_000;

/** 500 streams at once for 30 s through one API process, and then 200 whose clients leave in the middle. */
export async function streamsBench(): Promise<Measured[]> {
  const upstream = await startChild("./children/upstream.ts", { core: 0 });
  const stack = await openStack({
    env: { EDGE_BASE_URL: `${upstream.ready.url}/v1`, EDGE_MODEL: "bench" },
    apiCore: 1,
  });
  const dispatcher = new Agent({ connections: HELD, bodyTimeout: 0, headersTimeout: 0 });
  try {
    // An API in use has V8's space for new objects at its full size, which a fresh one has not: it is no part of a stream.
    await runConcurrently(WARM_UP, 32, (n) => follow(stack, dispatcher, { name: `warm${n}`, words: 10, everyMs: 5 }));
    await delay(2_000);
    const idle = await holdIdle(stack, dispatcher);
    const held = await hold(stack, dispatcher);
    const freedMs = await leave(stack, dispatcher, upstream);
    return [idle, ...held, freedLine(freedMs)];
  } finally {
    await dispatcher.destroy();
    await stack.close();
    await upstream.stop();
  }
}

/** What a held stream takes that says little: 1,000 at once, a word a second. */
async function holdIdle(stack: Stack, dispatcher: Agent): Promise<Measured> {
  const before = await residentMb(stack.api);
  const streams = Array.from({ length: HELD }, (_, n) =>
    follow(stack, dispatcher, { name: `h${n}`, words: HELD_SECONDS, everyMs: 1_000 }),
  );
  const settled = Promise.allSettled(streams);
  await delay((HELD_SECONDS - 3) * 1_000);
  const held = await residentMb(stack.api);
  const whole = (await settled).filter((result) => result.status === "fulfilled" && result.value).length;
  return {
    what: `memory of a held stream, ${HELD} held`,
    anchor: `${whole} of ${HELD} whole`,
    product: `${format(before)} → ${format(held)} MB`,
    value: whole === HELD ? ((held - before) * 1_024) / HELD : Number.NaN,
    must: 83,
    aim: 60,
    isMoreBetter: false,
    unit: " KB",
  };
}

async function hold(stack: Stack, dispatcher: Agent): Promise<Measured[]> {
  const words = SECONDS * WORDS_A_SECOND;
  await stack.api.ask({ type: "loop-delay" }); // starts again from zero
  const streams = Array.from({ length: STREAMS }, (_, n) => follow(stack, dispatcher, { name: `s${n}`, words }));
  const settled = Promise.allSettled(streams);
  await delay((SECONDS * 1_000) / 3);
  const early = await residentMb(stack.api);
  await delay((SECONDS * 1_000) / 2);
  const late = await residentMb(stack.api);
  const results = await settled;
  const { p99Ms } = (await stack.api.ask({ type: "loop-delay" })) as { p99Ms: number };
  const wrong = results.filter((result) => result.status === "rejected" || !result.value).length;
  const what = `${STREAMS} streams for ${SECONDS} s`;
  const line = (more: Pick<Measured, "what" | "product" | "value" | "must" | "aim" | "unit">): Measured => ({
    ...more,
    anchor: `${WORDS_A_SECOND} words a second each`,
    isMoreBetter: false,
  });
  return [
    line({ what: `${what}: lost or mixed up`, product: `${wrong}`, value: wrong, must: 0, aim: 0, unit: "" }),
    line({
      what: `${what}: memory from the first third to the end`,
      product: `${format(early)} → ${format(late)} MB`,
      value: late / early,
      must: 1.2,
      aim: 1.05,
      unit: "×",
    }),
    line({
      what: `${what}: event-loop delay p99`,
      product: `${format(p99Ms)} ms`,
      value: p99Ms,
      must: 100,
      aim: 50,
      unit: " ms",
    }),
  ];
}

/** How long the upstream calls of clients that leave live on, in ms. */
async function leave(stack: Stack, dispatcher: Agent, upstream: Child): Promise<number> {
  const openStreams = async () => Number((await upstream.ask({ type: "open-streams" })).open);
  const controller = new AbortController();
  const { signal } = controller;
  const leaving = Array.from({ length: LEAVING }, (_, n) =>
    follow(stack, dispatcher, { name: `l${n}`, words: 10_000, signal }).catch(() => undefined),
  );
  const deadline = performance.now() + FREE_TIMEOUT_MS;
  while ((await openStreams()) < LEAVING && performance.now() < deadline) await delay(20);
  const leftAt = performance.now();
  controller.abort();
  while ((await openStreams()) > 0) {
    if (performance.now() - leftAt > FREE_TIMEOUT_MS) break;
    await delay(5);
  }
  const freedMs = performance.now() - leftAt;
  await Promise.all(leaving);
  return freedMs;
}

const freedLine = (freedMs: number): Measured => ({
  what: `${LEAVING} clients leave: their upstream calls are gone after`,
  anchor: "none",
  product: `${format(freedMs)} ms`,
  value: freedMs,
  must: 1_000,
  aim: 300,
  isMoreBetter: false,
  unit: " ms",
});

type StreamRequest = { name: string; words: number; everyMs?: number; signal?: AbortSignal };

/** Reads one stream; whether it said all of its own words in their order, and nothing else. */
async function follow(
  stack: Stack,
  dispatcher: Agent,
  { name, words, everyMs = 1_000 / WORDS_A_SECOND, signal }: StreamRequest,
): Promise<boolean> {
  const content = `stream ${name} of ${words} words every ${everyMs} ms`;
  const response = await request(`${stack.url}/ai/chat`, {
    method: "POST",
    headers: stack.headers,
    body: JSON.stringify({ messages: [{ role: "user", content }], stream: true }),
    dispatcher,
    ...(signal === undefined ? {} : { signal }),
  });
  if (response.statusCode !== 200) throw new Error(`answered ${response.statusCode}`);
  let heard = "";
  response.body.setEncoding("utf8");
  for await (const part of response.body) {
    for (const [, word = ""] of String(part).matchAll(/"content":"([^"]*)"/g)) heard += word;
  }
  const expected = Array.from({ length: words }, (_, n) => `${name}:${n} `).join("");
  return heard === expected;
}
