import { Agent, request } from "undici";
import { startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { median, percentile, runConcurrently, runOpenLoop } from "./measure.ts";
import { openStack } from "./stack.ts";

const prompt = "Explain what a queue is good for, and when it is not. ".repeat(6).slice(0, 300);
const rounds = 5;
/** Calls of each arm before anything is measured: until then V8 still compiles what runs often, in all of them. */
const warmUp = { json: 8_000, streams: 1_500 };
type Arm = "direct" | "proxy" | "product";
type Target = { url: string; headers: Record<string, string>; core: number };

/**
 * `/ai/chat` against calling the upstream directly and against a bare Koa proxy: added latency at 200, 400 and 1,000
 * requests/s, added time to the first token, and requests/s at saturation. Generator and upstream share one core, the
 * gateway has the other.
 */
export async function chatBench(): Promise<Measured[]> {
  const upstream = await startChild("./children/upstream.ts", { core: 0 });
  const upstreamUrl = String(upstream.ready.url);
  const proxy = await startChild("./children/bare-proxy.ts", { args: [upstreamUrl], core: 1 });
  const stack = await openStack({ env: { EDGE_BASE_URL: `${upstreamUrl}/v1`, EDGE_MODEL: "bench" }, apiCore: 1 });
  const dispatcher = new Agent({ connections: 256 });
  const targets: Record<Arm, Target> = {
    direct: { url: `${upstreamUrl}/v1/chat/completions`, headers: { "content-type": "application/json" }, core: 0 },
    proxy: { url: String(proxy.ready.url), headers: { "content-type": "application/json" }, core: 1 },
    product: { url: `${stack.url}/ai/chat`, headers: stack.headers, core: 1 },
  };
  try {
    const call = (arm: Arm, stream: boolean) => callOnce(targets[arm], { stream, dispatcher });
    for (const arm of arms) {
      await runConcurrently(warmUp.json, 32, () => call(arm, false));
      await runConcurrently(warmUp.streams, 32, () => call(arm, true));
    }
    const json = await alternate((arm, seed) => openLoop(seed, () => call(arm, false), { perSecond: 200, seconds: 4 }));
    const busier = await alternate((arm, seed) =>
      openLoop(seed, () => call(arm, false), { perSecond: 400, seconds: 3 }),
    );
    const busiest = await alternate((arm, seed) =>
      openLoop(seed, () => call(arm, false), { perSecond: 1_000, seconds: 2 }),
    );
    const first = await alternate((arm, seed) => openLoop(seed, () => call(arm, true), { perSecond: 20, seconds: 4 }));
    const rate = await alternate(async (arm) => {
      const wallMs = await runConcurrently(6_000, 64, () => call(arm, false));
      return { p50: 6_000_000 / wallMs, p99: 0 };
    });
    return toLines({ json, busier, busiest, first, rate });
  } finally {
    await dispatcher.close();
    await stack.close();
    await proxy.stop();
    await upstream.stop();
  }
}

const arms: readonly Arm[] = ["direct", "proxy", "product"];
type Round = { p50: number; p99: number };
type Results = Record<Arm, Round[]>;

/** Every arm once a round, so that a busy moment of the machine falls on all of them. */
async function alternate(run: (arm: Arm, seed: number) => Promise<Round>): Promise<Results> {
  const results: Results = { direct: [], proxy: [], product: [] };
  for (let round = 0; round < rounds; round += 1) {
    for (const arm of arms) results[arm].push(await run(arm, round + 1));
  }
  return results;
}

async function openLoop(
  seed: number,
  call: () => Promise<number>,
  load: { perSecond: number; seconds: number },
): Promise<Round> {
  const latencies = await runOpenLoop({ ...load, seed, call });
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
}

/** One chat; the time to the whole answer, or to the first bytes of a stream, in ms. */
async function callOnce(target: Target, options: { stream: boolean; dispatcher: Agent }): Promise<number> {
  const started = performance.now();
  const response = await request(target.url, {
    method: "POST",
    headers: target.headers,
    body: JSON.stringify({ messages: [{ role: "user", content: prompt }], stream: options.stream }),
    dispatcher: options.dispatcher,
  });
  if (response.statusCode !== 200)
    throw new Error(`${target.url} answered ${response.statusCode}: ${await response.body.text()}`);
  if (!options.stream) {
    await response.body.text();
    return performance.now() - started;
  }
  let firstMs = Number.NaN;
  for await (const chunk of response.body) {
    if (Number.isNaN(firstMs) && String(chunk).includes("word")) firstMs = performance.now() - started;
  }
  return firstMs;
}

function toLines(results: Record<"json" | "busier" | "busiest" | "first" | "rate", Results>): Measured[] {
  // Beyond an ordinary direct call: the slowest direct ones swing more between two rounds than what is added.
  const added = (of: Results, arm: Arm, which: keyof Round) =>
    median(of[arm].map((round, index) => round[which] - (of.direct[index]?.p50 ?? 0)));
  const us = (ms: number) => `${format(ms * 1_000)} µs`;
  const rateOf = (arm: Arm) => median(results.rate[arm].map((round) => round.p50));
  const addedLine = (
    what: string,
    of: Results,
    which: keyof Round,
    goals: { must: number; aim: number },
  ): Measured => ({
    what,
    anchor: `bare proxy ${us(added(of, "proxy", which))}`,
    product: us(added(of, "product", which)),
    value: added(of, "product", which) / added(of, "proxy", which),
    ...goals,
    isMoreBetter: false,
    unit: "×",
  });
  // peer's figures of performance.md: the added p50 of Portkey is 1/0.24 of the bare proxy's, so 0.6 of it is 2.5 proxies
  return [
    addedLine("chat JSON, added p50 at 200/s", results.json, "p50", { must: 2.5, aim: 1.5 }),
    addedLine("chat JSON, added p99 at 200/s", results.json, "p99", { must: 4, aim: 2 }),
    addedLine("chat JSON, added p99 at 400/s", results.busier, "p99", { must: 6, aim: 3 }),
    addedLine("chat JSON, added p99 at 1,000/s", results.busiest, "p99", { must: 6, aim: 3 }),
    addedLine("chat stream, added p50 of the first token", results.first, "p50", { must: 2.5, aim: 1.5 }),
    {
      what: "chat JSON, requests/s at saturation, one core",
      anchor: `bare proxy ${format(rateOf("proxy"))}/s`,
      product: `${format(rateOf("product"))}/s`,
      value: rateOf("product") / rateOf("proxy"),
      must: 0.25,
      aim: 0.5,
      isMoreBetter: true,
      unit: "×",
    },
  ];
}
