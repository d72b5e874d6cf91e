import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Agent, request } from "undici";
import { type Child, pin, startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { median, percentile, runConcurrently, runOpenLoop } from "./measure.ts";
import { cpuMsOf } from "./process-usage.ts";
import { prompt } from "./prompt.ts";
import { openStack } from "./stack.ts";

const rounds = 5;
const levels = [1, 32, 256] as const;
/** Calls of one measurement, by how many run at once and whether they are streamed. */
const jsonCalls = { 1: 400, 32: 2_000, 256: 2_000 };
const streamCalls = { 1: 30, 32: 120, 256: 256 };
/** Calls of each arm before anything is measured: until then V8 still compiles what runs often, in all of them. */
const warmUp = { json: 8_000, streams: 400 };
/** Words of one stream; the upstream sends them without a pause. */
const wordsAStream = 512;
/** The load of the calls whose added latency is measured: far below what any arm can take. */
const steady = { perSecond: 200, seconds: 4 };
const START_TIMEOUT_MS = 20_000;

export const endlessPrompt = `${prompt} Without end, without a pause.`;
const arms = ["direct", "proxy", "product", "peer"] as const;
type Arm = (typeof arms)[number];
type Target = { url: string; headers: Record<string, string>; pid: number | undefined };
type Sample = { perSecond: number; cpuMs: number; firstMs: number };
type Results = Record<Arm, Sample[]>;
type Latency = { p50: number; p99: number };

/**
 * The gateway beside the upstream itself, a bare Koa proxy and a well-known gateway from npm: the latency that each adds to
 * calls at a steady rate, then JSON and streams with 1, 32 and 256 at once. All arms take turns; generator and upstream have
 * one core, the gateway under test the other.
 */
export async function gatewayBench(): Promise<Measured[]> {
  pin(process.pid, 0);
  const upstream = await startChild("./children/upstream.ts", { core: 0 });
  const upstreamUrl = String(upstream.ready.url);
  const proxy = await startChild("./children/bare-proxy.ts", { args: [upstreamUrl], core: 1 });
  const stack = await openStack({ env: { EDGE_BASE_URL: `${upstreamUrl}/v1`, EDGE_MODEL: "bench" }, apiCore: 1 });
  const peer = await startPeer();
  const dispatcher = new Agent({ connections: 256 });
  const json = { "content-type": "application/json" };
  const targets: Record<Arm, Target> = {
    direct: { url: `${upstreamUrl}/v1/chat/completions`, headers: json, pid: upstream.process.pid },
    proxy: { url: String(proxy.ready.url), headers: json, pid: proxy.process.pid },
    product: { url: `${stack.url}/ai/chat`, headers: stack.headers, pid: stack.api.process.pid },
    peer: {
      url: `${peer.url}/v1/chat/completions`,
      headers: {
        ...json,
        authorization: "Bearer sk-bench",
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": `${upstreamUrl}/v1`,
      },
      pid: peer.process.pid,
    },
  };
  const measure = (arm: Arm, options: { isStream: boolean; atOnce: number; calls: number }) =>
    sample(targets[arm], { ...options, dispatcher });
  try {
    for (const arm of arms) {
      await measure(arm, { isStream: false, atOnce: 32, calls: warmUp.json });
      await measure(arm, { isStream: true, atOnce: 32, calls: warmUp.streams });
    }
    const lines = addedLines(await measureLatency(targets, dispatcher));
    for (const isStream of [false, true]) {
      for (const atOnce of levels) {
        const calls = (isStream ? streamCalls : jsonCalls)[atOnce];
        const results: Results = { direct: [], proxy: [], product: [], peer: [] };
        for (let round = 0; round < rounds; round += 1) {
          for (const arm of arms) results[arm].push(await measure(arm, { isStream, atOnce, calls }));
        }
        lines.push(...(isStream ? streamLines(results, atOnce) : jsonLines(results, atOnce)));
      }
    }
    return lines;
  } finally {
    pin(process.pid, "any"); // what other benches start would inherit it
    await dispatcher.close();
    await peer.stop();
    await stack.close();
    await proxy.stop();
    await upstream.stop();
  }
}

/** The latency of JSON calls that come at 200 a second, whether or not earlier ones have ended; in ms. */
async function measureLatency(targets: Record<Arm, Target>, dispatcher: Agent): Promise<Record<Arm, Latency[]>> {
  const results: Record<Arm, Latency[]> = { direct: [], proxy: [], product: [], peer: [] };
  for (let round = 0; round < rounds; round += 1) {
    for (const arm of arms) {
      const call = async () => {
        const startedAt = performance.now();
        await callOnce(targets[arm], false, dispatcher);
        return performance.now() - startedAt;
      };
      const latencies = await runOpenLoop({ ...steady, seed: round + 1, call });
      results[arm].push({ p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) });
    }
  }
  return results;
}

/** What the gateway adds to the upstream's own latency, as a share of what the peer adds. */
function addedLines(results: Record<Arm, Latency[]>): Measured[] {
  const us = (ms: number) => `${format(ms * 1_000)} µs`;
  const line = (which: keyof Latency, must: number, aimInProxies: number): Measured => {
    const added = (arm: Arm) =>
      median(results[arm].map((round, n) => round[which] - (results.direct[n]?.[which] ?? Number.NaN)));
    return {
      what: `chat JSON, added ${which} at ${steady.perSecond} requests/s, against Portkey`,
      anchor: `Portkey ${us(added("peer"))} (bare proxy ${us(added("proxy"))})`,
      product: us(added("product")),
      value: added("product") / added("peer"),
      must,
      aim: (aimInProxies * added("proxy")) / added("peer"),
      isMoreBetter: false,
      unit: "×",
    };
  };
  return [line("p50", 0.6, 1.5), line("p99", 0.7, 2)];
}

async function sample(
  target: Target,
  { isStream, atOnce, calls, dispatcher }: { isStream: boolean; atOnce: number; calls: number; dispatcher: Agent },
): Promise<Sample> {
  const firsts: number[] = [];
  const cpuBefore = await cpuMsOf(target.pid);
  const wallMs = await runConcurrently(calls, atOnce, async () => {
    firsts.push(await callOnce(target, isStream, dispatcher));
  });
  const cpuMs = ((await cpuMsOf(target.pid)) - cpuBefore) / calls;
  const events = isStream ? calls * wordsAStream : calls;
  return { perSecond: (events / wallMs) * 1_000, cpuMs, firstMs: median(firsts) };
}

/** One chat, read to its end; the time to its first word, in ms. */
async function callOnce({ url, headers }: Target, isStream: boolean, dispatcher: Agent): Promise<number> {
  const startedAt = performance.now();
  const content = isStream ? endlessPrompt : prompt;
  const body = JSON.stringify({ model: "bench", messages: [{ role: "user", content }], stream: isStream });
  const response = await request(url, { method: "POST", headers, body, dispatcher });
  if (response.statusCode !== 200)
    throw new Error(`${url} answered ${response.statusCode}: ${await response.body.text()}`);
  let firstMs = Number.NaN;
  let words = 0;
  response.body.setEncoding("utf8");
  for await (const part of response.body) {
    if (Number.isNaN(firstMs)) firstMs = performance.now() - startedAt;
    words += String(part).split("word ").length - 1;
  }
  const isWhole = isStream ? words >= wordsAStream - 2 : words > 0; // a word may fall between two parts
  if (!isWhole) throw new Error(`${url} answered ${words} words`);
  return firstMs;
}

const of = (results: Results, arm: Arm, field: keyof Sample) => median(results[arm].map((one) => one[field]));
const besides = (results: Results, field: keyof Sample, unit: string) =>
  `proxy ${format(of(results, "proxy", field))}${unit} (upstream ${format(of(results, "direct", field))}, peer ${format(of(results, "peer", field))})`;

function jsonLines(results: Results, atOnce: number): Measured[] {
  const rate = of(results, "product", "perSecond");
  const cpu = of(results, "product", "cpuMs");
  const lines: Measured[] = [
    {
      what: `gateway JSON, requests/s, ${atOnce} at once`,
      anchor: besides(results, "perSecond", "/s"),
      product: `${format(rate)}/s (${format(rate / of(results, "peer", "perSecond"))}× the peer)`,
      value: rate / of(results, "proxy", "perSecond"),
      must: 0.25,
      aim: 0.5,
      isMoreBetter: true,
      unit: "×",
    },
  ];
  if (atOnce !== 32) return lines;
  return [
    ...lines,
    {
      what: "gateway JSON, CPU a call, 32 at once",
      anchor: besides(results, "cpuMs", " ms"),
      product: `${format(cpu)} ms`,
      value: cpu / of(results, "proxy", "cpuMs"),
      must: 4,
      aim: 2,
      isMoreBetter: false,
      unit: "×",
    },
  ];
}

function streamLines(results: Results, atOnce: number): Measured[] {
  const rate = of(results, "product", "perSecond");
  const first = of(results, "product", "firstMs");
  return [
    {
      what: `gateway streams, tokens/s, ${atOnce} at once`,
      anchor: besides(results, "perSecond", "/s"),
      product: `${format(rate)}/s (${format(rate / of(results, "peer", "perSecond"))}× the peer)`,
      value: rate / of(results, "proxy", "perSecond"),
      must: 0.5,
      aim: 1,
      isMoreBetter: true,
      unit: "×",
    },
    {
      what: `gateway streams, time to first token, ${atOnce} at once`,
      anchor: besides(results, "firstMs", " ms"),
      product: `${format(first)} ms`,
      value: first / of(results, "peer", "firstMs"),
      must: 1,
      aim: 0.5,
      isMoreBetter: false,
      unit: "× the peer's",
    },
  ];
}

type Peer = { url: string; process: ChildProcess; stop: Child["stop"] };

/** `@portkey-ai/gateway`, as npm installs it, on a free port and the gateway's core. */
async function startPeer(): Promise<Peer> {
  const script = fileURLToPath(
    new URL("../../node_modules/@portkey-ai/gateway/build/start-server.js", import.meta.url),
  );
  const port = await freePort();
  const child = spawn(process.execPath, [script, `--port=${port}`, "--headless"], {
    stdio: "ignore",
    env: { ...process.env, NODE_ENV: "production", TRUSTED_CUSTOM_HOSTS: "127.0.0.1,localhost" },
  });
  const url = `http://127.0.0.1:${port}`;
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(await answers(url))) {
    if (performance.now() > deadline || child.exitCode !== null) throw new Error("the peer does not start");
    await delay(100);
  }
  pin(child.pid, 1);
  const stop = async () => {
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  return { url, process: child, stop };
}

const answers = (url: string) =>
  request(url).then(
    async ({ body }) => {
      await body.dump();
      return true;
    },
    () => false,
  );

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  if (address === null || typeof address === "string") throw new Error("no port is free");
  return address.port;
}
