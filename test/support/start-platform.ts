import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serveApi } from "../../api/server.ts";
import { type Config, loadConfig } from "../../src/config/config.ts";
import type { Work } from "../../src/jobs/work.ts";
import { type Disposables, withDisposables } from "../../src/lib/disposables.ts";
import { openPlatform, type Platform } from "../../src/platform.ts";
import { startWorkers } from "../../workers/start-workers.ts";
import { makeScannedLog, readPlaces, rejectSecrets } from "./secret-scan.ts";
import { type SharedServices, shareServices } from "./shared-services.ts";

export type TestPlatform = {
  platform: Platform;
  /** Base URL of the API, without a slash at the end. */
  url: string;
  /** The environment that another process needs to join this platform. */
  env: Record<string, string>;
  /** One key a role of the first tenant, and an owner's of another one. */
  keys: { owner: string; admin: string; member: string; stranger: string };
  close(): Promise<void>;
};

export type TestOptions = {
  env?: Record<string, string>;
  /** False: nobody takes jobs, as when all workers are down. */
  workers?: boolean;
  /** Works of the test's own. */
  extra?: readonly Work[];
  /**
   * `private`: an embedded store and a Redis of the test's own, for one that kills, freezes, empties or reads them as a whole,
   * or that puts secrets there. All others share those of the run.
   */
  services?: "private";
  /** True: the test itself puts secrets where none belong, so that none are looked for at its end. */
  holdsSecrets?: boolean;
  /** Told all lines of the log, at the level of most detail. */
  onLog?: (text: string) => void;
};

/**
 * The whole product in this process: a database and a prefix of its own in the embedded services of the run (or those of
 * `MONGODB_URL` and `REDIS_URL`), the API on a free port and, unless `workers` is false, one worker of each queue.
 * When it closes, no key of a provider and no key of the API may be in its log, in its Redis or in its store.
 */
export function startPlatform(options: TestOptions = {}): Promise<TestPlatform> {
  return withDisposables(async (disposables) => {
    if (options.holdsSecrets && options.services !== "private")
      throw new TypeError("secrets need services of their own");
    const services = options.services === "private" ? await ownServices(disposables) : await shareServices();
    const unique = `t${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
    const env = {
      ...pick(process.env, ["MONGODB_URL", "REDIS_URL", "REDIS_CLUSTER"]),
      DATA_DIR: services.dataDir,
      PORT: "0",
      MONGODB_DB: unique,
      REDIS_PREFIX: unique,
      LOG_LEVEL: process.env.LOG_LEVEL ?? "silent",
      ...(process.env.MONGODB_URL ? { MASTER_KEY: Buffer.alloc(32, 7).toString("base64") } : {}),
      ADMIN_TOKEN: "operator-token-of-the-tests",
      RATE_LIMIT_RPM: "1000000",
      UPLOAD_BYTES_PER_SECOND: "1000000000",
      SHUTDOWN_GRACE_MS: "2000",
      ...options.env,
    };
    const config = loadConfig(env);
    disposables.add(() => services.clear(config));
    const extra = options.extra ?? [];
    const log = makeScannedLog(options.onLog);
    const platform = await openPlatform(config, {
      name: "test",
      queues: extra.map(({ queue }) => queue),
      ...(process.env.LOG_LEVEL ? {} : { logger: log.logger }),
    });
    disposables.add(() => platform.close());
    const api = await serveApi(platform);
    disposables.add(() => api.close());
    if (options.workers !== false) {
      const workers = await startWorkers(platform, {
        extra,
        concurrencyFactor: config.workers.concurrencyFactor,
        shutdownGraceMs: config.shutdownGraceMs,
      });
      disposables.add(() => workers.close());
    }
    if (!options.holdsSecrets) {
      disposables.add(async () => rejectSecrets([...log.leaks, ...(await services.read(config))]));
    }
    const { tenancy } = platform;
    const first = await tenancy.ensureTenant("first");
    const second = await tenancy.ensureTenant("second");
    const keyOf = async (tenantId: string, role: "owner" | "admin" | "member") =>
      (await tenancy.createKey({ tenantId, role, subject: `${role}@test` })).key;
    return {
      platform,
      url: api.url,
      env,
      keys: {
        owner: await keyOf(first, "owner"),
        admin: await keyOf(first, "admin"),
        member: await keyOf(first, "member"),
        stranger: await keyOf(second, "owner"),
      },
      close: disposables.close,
    };
  });
}

/** A data folder for one platform alone. */
async function ownServices(disposables: Disposables): Promise<Pick<SharedServices, "dataDir" | "read" | "clear">> {
  const dataDir = await mkdtemp(join(tmpdir(), "switchyard-test-"));
  disposables.add(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }));
  // What is embedded is gone with the folder; in a part that was given the platform has names of its own.
  const clear = async (config: Config) => {
    if (process.env.MONGODB_URL || process.env.REDIS_URL) await (await shareServices()).clear(config);
  };
  return { dataDir, read: readPlaces, clear };
}

function pick(from: NodeJS.ProcessEnv, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (from[name] ? [[name, from[name]]] : [])));
}
