import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { KEEP_COMPLETED } from "../../src/jobs/queue-client.ts";
import { queues } from "../../src/jobs/queues.ts";
import { type Child, startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { median, percentile } from "./measure.ts";
import { residentMb } from "./process-usage.ts";
import { type Call, factorOfHalf, makeSoakLoad, type SoakLoad } from "./soak-load.ts";
import { openStack, type Stack } from "./stack.ts";

/** How long the load goes on, in seconds, and how often it is looked at. */
const seconds = Number(process.env.SOAK_SECONDS ?? 600);
const sampleEverySeconds = 5; // each look collects garbage
/** Share of the time at whose end caches and pools are filled, and each queue has as many ended jobs as it keeps. */
const warmUp = 0.4;
/** How long a fresh stack works before its calls are compared; how often the two take turns then, and for how long, in seconds. */
const fresh = { warmUpSeconds: 90, rounds: 6, seconds: 30 };
type Sample = Record<"api heap" | "api RSS" | "worker heap" | "worker RSS" | "handles" | "Redis" | "store", number>;

/**
 * Mixed work at half of saturation: chats, streams, documents that come and go, queries, jobs, agents and workflows at a steady
 * rate. What the processes and Redis hold after the warm-up must not grow; the store grows by its records alone. At the end no
 * kind of call may be slower than with a fresh stack. The two take turns: a machine is not the same half an hour later.
 */
export async function soakBench(): Promise<Measured[]> {
  const upstream = await startChild("./children/upstream.ts");
  const env = { EDGE_BASE_URL: `${upstream.ready.url}/v1`, EDGE_MODEL: "bench" };
  const open = () => openStack({ workers: 2, env, flags: ["--expose-gc"] });
  const stack = await open();
  const redis = new Redis(stack.redisUrl, { maxRetriesPerRequest: 1 });
  try {
    const load = await makeSoakLoad(stack);
    const factor = await factorOfHalf(load);
    const samples: Sample[] = [];
    let isOver = false;
    const running = load.run({ factor, seconds }).finally(() => {
      isOver = true;
    });
    running.catch(() => undefined); // it is awaited below
    while (!isOver && samples.length * sampleEverySeconds < seconds) {
      await delay(sampleEverySeconds * 1_000);
      samples.push(await take(stack, redis));
    }
    const calls = await running;
    await delay(3_000);
    const held = [...toLines(samples), await retentionLine(stack, redis)];
    const rounds = await compareWithFresh({ load, factor }, open);
    return [...held, ...latencyLines(rounds), failureLine(samples, { calls: calls.length, failures: load.failures })];
  } finally {
    redis.disconnect();
    await stack.close();
    await upstream.stop();
  }
}

async function take({ api, workers, env }: Stack, redis: Redis): Promise<Sample> {
  const usageOf = async (child: Child) => (await child.ask({ type: "usage" })) as { heapMb: number; handles: number };
  const [ofApi, ...ofWorkers] = await Promise.all([api, ...workers].map(usageOf));
  const resident = await Promise.all([api, ...workers].map(residentMb));
  const usedBytes = Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
  const files = ["store.sqlite", "store.sqlite-wal"].map((name) => stat(join(env.DATA_DIR ?? "", name)));
  const bytes = (await Promise.all(files)).reduce((sum, { size }) => sum + size, 0);
  return {
    "api heap": ofApi?.heapMb ?? Number.NaN,
    "api RSS": resident[0] ?? Number.NaN,
    "worker heap": Math.max(...ofWorkers.map(({ heapMb }) => heapMb)),
    "worker RSS": Math.max(...resident.slice(1)),
    handles: [ofApi, ...ofWorkers].reduce((sum, one) => sum + (one?.handles ?? 0), 0),
    Redis: usedBytes / 1_048_576,
    store: bytes / 1_048_576,
  };
}

/** The first and the last third of what came after the warm-up, beside each other. */
function thirdsOf<T>(items: readonly T[]): [first: T[], last: T[]] {
  const steady = items.slice(Math.floor(items.length * warmUp));
  const third = Math.max(1, Math.floor(steady.length / 3));
  return [steady.slice(0, third), steady.slice(-third)];
}

function toLines(samples: readonly Sample[]): Measured[] {
  const thirds = thirdsOf(samples);
  return (["api heap", "api RSS", "worker heap", "worker RSS", "handles", "Redis"] as const).map((name) => {
    // Near the least of each third: what is left when calls have ended.
    const [early = 0, late = 0] = thirds.map((third) =>
      percentile(
        third.map((sample) => sample[name]),
        0.1,
      ),
    );
    const unit = name === "handles" ? "" : " MB";
    return {
      what: `${name} after ${seconds} s of mixed work`,
      anchor: `after the warm-up ${format(early)}${unit}`,
      product: `at the end ${format(late)}${unit}`,
      value: late / early,
      must: 1.15,
      aim: 1.02,
      isMoreBetter: false,
      unit: "×",
    };
  });
}

type Round = { soaked: Call[]; fresh: Call[] };

/** The same load on a stack that has worked for long and on a fresh one, in turns. */
async function compareWithFresh(
  { load, factor }: { load: SoakLoad; factor: number },
  open: () => Promise<Stack>,
): Promise<Round[]> {
  const stack = await open();
  try {
    const freshLoad = await makeSoakLoad(stack);
    await freshLoad.run({ factor, seconds: fresh.warmUpSeconds });
    const rounds: Round[] = [];
    for (let round = 0; round < fresh.rounds; round += 1) {
      const { seconds } = fresh;
      rounds.push({ soaked: await load.run({ factor, seconds }), fresh: await freshLoad.run({ factor, seconds }) });
    }
    load.failures.push(...freshLoad.failures);
    return rounds;
  } finally {
    await stack.close();
  }
}

/** The kind of call that is slowest beside a fresh stack: the median of what the rounds show. */
function latencyLines(rounds: readonly Round[]): Measured[] {
  const timesOf = (calls: readonly Call[], kind: string) =>
    calls.filter((call) => call.kind === kind).map(({ ms }) => ms);
  const line = (share: number, must: number): Measured => {
    const kinds = [...new Set(rounds.flatMap((round) => round.fresh.map(({ kind }) => kind)))].map((kind) => {
      const each = rounds.map((round) => ({
        soaked: percentile(timesOf(round.soaked, kind), share),
        fresh: percentile(timesOf(round.fresh, kind), share),
      }));
      const [soaked, ofFresh] = [median(each.map((one) => one.soaked)), median(each.map((one) => one.fresh))];
      return { kind, soaked, ofFresh, ratio: median(each.map((one) => one.soaked / one.fresh)) };
    });
    const [slowest = { kind: "", soaked: Number.NaN, ofFresh: Number.NaN, ratio: Number.NaN }] = kinds.sort(
      (a, b) => b.ratio - a.ratio,
    );
    return {
      what: `p${share * 100} of calls after ${seconds} s of mixed work, the kind that is slowest beside a fresh stack`,
      anchor: `${slowest.kind}, fresh ${format(slowest.ofFresh)} ms`,
      product: `at the end ${format(slowest.soaked)} ms`,
      value: slowest.ratio,
      must,
      aim: 1.05,
      isMoreBetter: false,
      unit: "×",
    };
  };
  return [line(0.5, 1.2), line(0.99, 1.5)];
}

function failureLine(samples: readonly Sample[], made: { calls: number; failures: readonly string[] }): Measured {
  for (const failure of made.failures.slice(0, 5)) console.error(failure);
  const [first = 0, last = 0] = [samples[0]?.store, samples.at(-1)?.store];
  const rate = Math.round(made.calls / seconds);
  return {
    what: "calls of the soak that failed",
    anchor: `${made.calls.toLocaleString("en-US")} calls, ${rate}/s; the store grew ${format(first)} → ${format(last)} MB`,
    product: `${made.failures.length} failed`,
    value: made.failures.length,
    must: 0,
    aim: 0,
    isMoreBetter: false,
    unit: "",
  };
}

/** Finished jobs that are still in Redis, against what the queues say they keep. */
async function retentionLine({ env }: Stack, redis: Redis): Promise<Measured> {
  let most = 0;
  let kept = 0;
  for (const { name } of Object.values(queues)) {
    const queue = new Queue(name, { connection: redis, prefix: env.REDIS_PREFIX ?? "switchyard" });
    const { completed = 0 } = await queue.getJobCounts("completed");
    kept += completed;
    most = Math.max(most, completed / KEEP_COMPLETED.count);
  }
  return {
    what: "finished jobs left in Redis, the fullest queue against what it keeps",
    anchor: "what the product keeps",
    product: `${kept.toLocaleString("en-US")} in all queues`,
    value: most,
    must: 1.05,
    aim: 1,
    isMoreBetter: false,
    unit: "×",
  };
}
