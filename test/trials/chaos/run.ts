import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { loadConfig } from "../../../src/config/config.ts";
import { ensureServices, type Services } from "../../../src/embedded/ensure.ts";
import { sweepWorks } from "../../../src/jobs/work.ts";
import { type Disposables, withDisposables } from "../../../src/lib/disposables.ts";
import { makeLogger } from "../../../src/observe/logger.ts";
import { openPlatform } from "../../../src/platform.ts";
import { connectStore } from "../../../src/store/connect.ts";
import { startFakeBatches } from "../../support/fake-provider/batch-server.ts";
import { takeAccount } from "./account.ts";
import type { Meetings } from "./client.ts";
import type { Check } from "./evidence.ts";
import { type ExternalWorld, startExternalWorld } from "./external-world.ts";
import { type Fleet, startFleet } from "./fleet.ts";
import { type Freezer, makeFreezer } from "./freezer.ts";
import { type Load, runLoad } from "./load.ts";
import { type Fault, type FaultKind, planFaults } from "./schedule.ts";
import { makeServiceFaults, type ServiceFaults } from "./services.ts";
import { openTenants } from "./tenants.ts";
import { type JobWorkName, jobWorkNames } from "./work.ts";

/** Longest wait, after the last fault, for the calls that were begun and the jobs that were accepted, in ms; with a long load, as long as that. */
const SETTLE_MS = 120_000;

export type ChaosOptions = {
  seed: number;
  /** How long there is load, and faults with it, in ms. */
  durationMs: number;
  /** Mean time between two faults, in ms; or what is done to the processes instead, in that time. */
  everyMs: number | ((fleet: Fleet) => Promise<void>);
  /** See `startFleet`. */
  releases?: readonly string[];
  /** Settings in the place of those that fit a minute of faults. */
  settings?: Record<string, string>;
  /** The kinds of work; all if not given. With one alone, nobody chats or searches besides. */
  works?: readonly JobWorkName[];
  /** How many jobs are accepted at most, evenly over the time. */
  jobs?: number;
  tenants: number;
  apis: number;
  workers: number;
  /** An empty folder: the platform's data, and the logs of its processes. */
  folder: string;
  say(text: string): void;
};

export type ChaosOutcome = {
  /** How many faults of each kind were survived. */
  faults: Partial<Record<FaultKind, number>>;
  checks: Check[];
  accepted: number;
  /** From the last fault until everything had ended, in ms. */
  settledAfterMs: number;
};

/**
 * Runs the platform as processes of their own, loads it with the mixed work of several tenants, and kills, freezes and
 * restarts its parts on a seeded schedule; then waits until all accepted work has ended, and takes the account.
 */
export function runChaos(options: ChaosOptions): Promise<ChaosOutcome> {
  return withDisposables(async (disposables) => {
    try {
      return await underFire(options, disposables);
    } finally {
      await disposables.close();
    }
  });
}

async function underFire(options: ChaosOptions, disposables: Disposables): Promise<ChaosOutcome> {
  const { seed, durationMs, everyMs, say } = options;
  const external = await startExternalWorld(seed);
  disposables.add(() => external.close());
  const batches = await startFakeBatches();
  disposables.add(() => batches.close());
  batches.setDuration(500);
  const { services, env } = await openServices(options, disposables, { external, batchUrl: batches.origin });
  say(`starting ${options.apis} APIs and ${options.workers} workers${options.releases ? " of each release" : ""} …`);
  const giveUp = new AbortController();
  const meetings: Meetings = { statuses: new Map(), strange: [] };
  const logDir = join(options.folder, "logs");
  await mkdir(logDir, { recursive: true });
  const freezer = openFreezer(disposables);
  const envOf = (number: number) => ({ OPENAI_BASE_URL: external.baseUrlOf(number) });
  const fleet = await startFleet({ ...options, env, envOf, logDir, freezer });
  disposables.add(() => fleet.close());
  const { works = jobWorkNames, jobs = Number.POSITIVE_INFINITY } = options;
  const tenants = await openTenants({ ...options, works, env, fleet, external, meetings, giveUp: giveUp.signal });
  const load: Load = { accepted: [], chats: [], sown: 0, reads: 0, breaches: [] };
  say(`load and faults for ${Math.round(durationMs / 1_000)} s, seed ${seed} …`);
  const until = AbortSignal.timeout(durationMs);
  const loading = runLoad({ tenants, seed, until, giveUp: giveUp.signal, load, works, pace: { jobs, durationMs } });
  const faults =
    typeof everyMs === "number"
      ? await inflict(planFaults({ seed, durationMs, everyMs }), {
          fleet,
          services: makeServiceFaults(services, freezer),
          say,
        })
      : await everyMs(fleet).then(() => ({}));
  const calmSince = performance.now();
  say("no more faults: waiting for what was accepted …");
  const timer = setTimeout(() => giveUp.abort(), Math.max(SETTLE_MS, durationMs));
  await loading;
  clearTimeout(timer);
  const settledAfterMs = performance.now() - calmSince;
  await tidy(env);
  await fleet.close();
  const store = await connectStore({ url: env.MONGODB_URL ?? "", db: "switchyard", timeoutMs: 10_000 });
  disposables.add(() => store.close());
  const evidence = {
    db: store.db,
    tenants,
    load,
    external,
    submitted: batches.submitted,
    strangeAnswers: meetings.strange,
    statuses: meetings.statuses,
    endedByThemselves: fleet.unexpected,
    ends: fleet.ends,
  };
  const checks = await takeAccount(evidence, { folder: options.folder, env });
  return { faults, checks, accepted: load.accepted.length, settledAfterMs };
}

/** A freezer that thaws all when this program is stopped; the processes then end with it. */
function openFreezer(disposables: Disposables): Freezer {
  const freezer = makeFreezer();
  const stop = () => {
    freezer.thaw();
    process.exit(130);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, stop);
    disposables.add(() => void process.off(signal, stop));
  }
  return freezer;
}

async function openServices(
  { folder, settings }: ChaosOptions,
  disposables: Disposables,
  world: { external: ExternalWorld; batchUrl: string },
): Promise<{ services: Services; env: Record<string, string> }> {
  const dataDir = join(folder, "data");
  const logger = makeLogger({ level: "silent", name: "chaos" });
  const services = await ensureServices({ dataDir, mongo: true, redis: true, logger });
  disposables.add(() => services.close());
  const env = {
    DATA_DIR: dataDir,
    MONGODB_URL: services.mongoUrl ?? "",
    MONGODB_DB: "switchyard",
    REDIS_URL: services.redisUrl ?? "",
    PORT: "0",
    OPENAI_API_KEY: "sk-chaos",
    OPENAI_BASE_URL: world.external.baseUrlOf(0),
    ANTHROPIC_API_KEY: "sk-ant-chaos",
    ANTHROPIC_BASE_URL: world.batchUrl,
    FETCH_ALLOW_ORIGINS: world.external.origin,
    BATCH_MAX_LINES: "50",
    BATCH_COLLECT_MS: "500",
    BATCH_POLL_MS: "300",
    JOB_LEASE_MS: "2000",
    RECONCILE_EVERY_MS: "500",
    STORE_TIMEOUT_MS: "2000",
    SHUTDOWN_GRACE_MS: "2000",
    RATE_LIMIT_RPM: "1000000",
    UPLOAD_BYTES_PER_SECOND: "1000000000",
    LOG_LEVEL: "info",
    ...settings,
  };
  return { services, env };
}

/** Does at once what the workers' sweeps do to things that nothing has happened to for a while. */
async function tidy(env: Record<string, string>): Promise<void> {
  const platform = await openPlatform(loadConfig({ ...env, LOG_LEVEL: "silent" }), { name: "chaos" });
  try {
    await platform.approvals.sweep();
    await sweepWorks(platform.jobs, platform.works, 0);
  } finally {
    await platform.close();
  }
}

/** Inflicts the faults at their times, and resolves when the last one is over; how many there were of each kind. */
async function inflict(
  plan: readonly Fault[],
  deps: { fleet: Fleet; services: ServiceFaults; say(text: string): void },
): Promise<Partial<Record<FaultKind, number>>> {
  const survived: Partial<Record<FaultKind, number>> = {};
  const startedAt = performance.now();
  await Promise.all(
    plan.map(async (fault) => {
      await delay(fault.atMs - (performance.now() - startedAt));
      deps.say(
        `  ${(fault.atMs / 1_000).toFixed(1).padStart(6)} s  ${fault.kind}${fault.forMs > 0 ? ` for ${fault.forMs} ms` : ""}`,
      );
      if (await inflictOne(fault, deps)) survived[fault.kind] = (survived[fault.kind] ?? 0) + 1;
    }),
  );
  return survived;
}

/** False: what it is for was not there just then. */
function inflictOne(
  { kind, which, forMs }: Fault,
  { fleet, services }: { fleet: Fleet; services: ServiceFaults },
): Promise<boolean> {
  switch (kind) {
    case "kill-worker":
      return fleet.end("worker", { which, signal: "SIGKILL", awayMs: forMs });
    case "stop-worker":
      return fleet.end("worker", { which, signal: "SIGTERM", awayMs: forMs });
    case "kill-api":
      return fleet.end("api", { which, signal: "SIGKILL", awayMs: forMs });
    case "freeze-worker":
      return fleet.freeze("worker", { which, forMs });
    case "freeze-api":
      return fleet.freeze("api", { which, forMs });
    case "kill-redis":
      return services.kill("redis");
    case "freeze-redis":
      return services.freeze("redis", forMs);
    case "lose-redis":
      return services.loseRedis();
    case "kill-store":
      return services.kill("store");
    case "freeze-store":
      return services.freeze("store", forMs);
    default:
      return kind satisfies never;
  }
}
