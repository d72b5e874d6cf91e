import { Agent, request } from "undici";
import { percentile, runConcurrently, runOpenLoop } from "../measure.ts";

/** Chats to send: at Poisson times of a seed, or `total` of them with `atOnce` in flight. */
export type ChatLoad = {
  url: string;
  headers: Record<string, string>;
  isStream: boolean;
  calls: { perSecond: number; seconds: number; seed: number } | { total: number; atOnce: number };
};

/** Latencies in ms, of an open load, and calls a second. */
export type ChatLoadResult = { p50: number; p99: number; perSecond: number };

const dispatcher = new Agent({ connections: 256 });
/** What is asked: 300 characters. */
const prompt = "Explain what a queue is good for, and when it is not. ".repeat(6).slice(0, 300);

/** One chat; the time to the whole answer, or to the first bytes of a stream, in ms. */
async function callOnce({ url, headers, isStream }: ChatLoad): Promise<number> {
  const started = performance.now();
  const response = await request(url, {
    method: "POST",
    headers,
    body: JSON.stringify({ messages: [{ role: "user", content: prompt }], stream: isStream }),
    dispatcher,
  });
  if (response.statusCode !== 200)
    throw new Error(`${url} answered ${response.statusCode}: ${await response.body.text()}`);
  if (!isStream) {
    await response.body.text();
    return performance.now() - started;
  }
  let firstMs = Number.NaN;
  for await (const chunk of response.body) {
    if (Number.isNaN(firstMs) && String(chunk).includes("word")) firstMs = performance.now() - started;
  }
  return firstMs;
}

/**
 * The load of the chat bench. It is a process of its own, so that it has a core and flags of its own: a collection of its
 * garbage delays the calls that are in flight.
 */
async function run(load: ChatLoad): Promise<ChatLoadResult> {
  const { calls } = load;
  const call = () => callOnce(load);
  if ("perSecond" in calls) {
    const latencies = await runOpenLoop({ ...calls, call });
    return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99), perSecond: calls.perSecond };
  }
  const wallMs = await runConcurrently(calls.total, calls.atOnce, call);
  return { p50: Number.NaN, p99: Number.NaN, perSecond: (calls.total * 1_000) / wallMs };
}

process.on("message", async (load: ChatLoad) => process.send?.({ type: "answer", ...(await run(load)) }));
process.on("SIGTERM", () => process.exit(0));
process.on("disconnect", () => process.exit(0));
process.send?.({ type: "ready" });
