import type { ChatLoad, ChatLoadResult } from "./children/chat-load.ts";
import { type Child, startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { median } from "./measure.ts";
import { openStack } from "./stack.ts";

const rounds = 5;
/** Calls of each arm before anything is measured: until then V8 still compiles what runs often, in all of them. */
const warmUp = { json: 8_000, streams: 1_500 };
/**
 * Of the load whose latencies count: with V8's own sizes its garbage is collected for 10 to 30 ms every two seconds, and what
 * is in flight then is the slowest hundredth of the calls of all arms. Many small collections take more time in all, so
 * saturation is measured without these flags.
 */
const pacedFlags = ["--max-semi-space-size=1", "--initial-old-space-size=400"];
type Arm = "direct" | "proxy" | "product";

/**
 * `/ai/chat` against calling the upstream directly and against a bare Koa proxy: added latency at 200, 400 and 1,000
 * requests/s, added time to the first token, and requests/s at saturation. Load and upstream share one core, the gateway has
 * the other.
 */
export async function chatBench(): Promise<Measured[]> {
  const upstream = await startChild("./children/upstream.ts", { core: 0 });
  const upstreamUrl = String(upstream.ready.url);
  const proxy = await startChild("./children/bare-proxy.ts", { args: [upstreamUrl], core: 1 });
  const stack = await openStack({ env: { EDGE_BASE_URL: `${upstreamUrl}/v1`, EDGE_MODEL: "bench" }, apiCore: 1 });
  const paced = await startChild("./children/chat-load.ts", { core: 0, flags: pacedFlags });
  const saturating = await startChild("./children/chat-load.ts", { core: 0 });
  const json = { "content-type": "application/json" };
  const targets: Record<Arm, Pick<ChatLoad, "url" | "headers">> = {
    direct: { url: `${upstreamUrl}/v1/chat/completions`, headers: json },
    proxy: { url: String(proxy.ready.url), headers: json },
    product: { url: `${stack.url}/ai/chat`, headers: stack.headers },
  };
  const chat = async (load: Child, arm: Arm, calls: ChatLoad["calls"], isStream = false) =>
    (await load.ask({ ...targets[arm], isStream, calls })) as ChatLoadResult; // its answer
  try {
    for (const load of [saturating, paced]) {
      for (const arm of arms) {
        await chat(load, arm, { total: warmUp.json, atOnce: 32 });
        await chat(load, arm, { total: warmUp.streams, atOnce: 32 }, true);
      }
    }
    return toLines({
      json: await alternate((arm, seed) => chat(paced, arm, { perSecond: 200, seconds: 4, seed })),
      busier: await alternate((arm, seed) => chat(paced, arm, { perSecond: 400, seconds: 3, seed })),
      busiest: await alternate((arm, seed) => chat(paced, arm, { perSecond: 1_000, seconds: 2, seed })),
      first: await alternate((arm, seed) => chat(paced, arm, { perSecond: 20, seconds: 4, seed }, true)),
      rate: await alternate((arm) => chat(saturating, arm, { total: 6_000, atOnce: 64 })),
    });
  } finally {
    await saturating.stop();
    await paced.stop();
    await stack.close();
    await proxy.stop();
    await upstream.stop();
  }
}

const arms: readonly Arm[] = ["direct", "proxy", "product"];
type Results = Record<Arm, ChatLoadResult[]>;

/** Every arm once a round, so that a busy moment of the machine falls on all of them. */
async function alternate(run: (arm: Arm, seed: number) => Promise<ChatLoadResult>): Promise<Results> {
  const results: Results = { direct: [], proxy: [], product: [] };
  for (let round = 0; round < rounds; round += 1) {
    for (const arm of arms) results[arm].push(await run(arm, round + 1));
  }
  return results;
}

function toLines(results: Record<"json" | "busier" | "busiest" | "first" | "rate", Results>): Measured[] {
  // Beyond an ordinary direct call: the slowest direct ones swing more between two rounds than what is added.
  const added = (of: Results, arm: Arm, which: "p50" | "p99") =>
    median(of[arm].map((round, index) => round[which] - (of.direct[index]?.p50 ?? 0)));
  const us = (ms: number) => `${format(ms * 1_000)} µs`;
  const rateOf = (arm: Arm) => median(results.rate[arm].map((round) => round.perSecond));
  const addedLine = (
    what: string,
    of: Results,
    which: "p50" | "p99",
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
