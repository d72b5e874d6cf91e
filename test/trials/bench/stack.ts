import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiFlags, workerFlags } from "../../../scripts/start/children.ts";
import { loadConfig } from "../../../src/config/config.ts";
import { ensureServices } from "../../../src/embedded/ensure.ts";
import { withDisposables } from "../../../src/lib/disposables.ts";
import { makeLogger } from "../../../src/observe/logger.ts";
import { openPlatform } from "../../../src/platform.ts";
import { type Child, startChild } from "./children.ts";

/** A key of the bench's own tenant, made at start by the API. */
const apiKey = `sk_${"bench".repeat(7).slice(0, 32)}`;

export type Stack = {
  url: string;
  headers: Record<string, string>;
  env: Record<string, string>;
  mongoUrl: string;
  redisUrl: string;
  api: Child;
  workers: Child[];
  close(): Promise<void>;
};

/**
 * The product on a throw-away data folder, as processes of their own: embedded services, one API and `workers` workers, with
 * all that costs time left on (authentication, limits, ledger, logs at their usual level). The API and the workers are the
 * product's own, with the bench's no-op job added.
 */
export function openStack(options: { workers?: number; env?: Record<string, string>; apiCore?: number } = {}) {
  return withDisposables<Stack>(async (disposables) => {
    const dataDir = await mkdtemp(join(tmpdir(), "switchyard-bench-"));
    disposables.add(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
    const logger = makeLogger({ level: "error", name: "bench" });
    const services = await ensureServices({ dataDir, mongo: true, redis: true, ...loadConfig().embedded, logger });
    disposables.add(() => services.close());
    const env = {
      DATA_DIR: dataDir,
      MONGODB_URL: services.mongoUrl ?? "",
      REDIS_URL: services.redisUrl ?? "",
      PORT: "0",
      BOOTSTRAP_API_KEY: apiKey,
      RATE_LIMIT_RPM: "10000000",
      UPLOAD_BYTES_PER_SECOND: "1000000000",
      RATE_LIMIT_CONCURRENT: "100000",
      MAX_DOCUMENTS: "10000000",
      MAX_OPEN_JOBS: "1000000",
      ...options.env,
    };
    const pinned = options.apiCore === undefined ? {} : { core: options.apiCore };
    const api = await startChild("./children/api.ts", {
      env,
      flags: apiFlags,
      ...pinned,
    });
    disposables.add(() => api.stop());
    const workers: Child[] = [];
    for (let index = 0; index < (options.workers ?? 0); index += 1) {
      const worker = await startChild("./children/worker.ts", { env, flags: workerFlags });
      disposables.add(() => worker.stop());
      workers.push(worker);
    }
    const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
    return {
      url: String(api.ready.url),
      headers,
      env,
      mongoUrl: env.MONGODB_URL,
      redisUrl: env.REDIS_URL,
      api,
      workers,
      close: disposables.close,
    };
  });
}

/** A tenant of that name, with the headers of an owner's key. */
export async function openTenant({ env }: Stack, name: string) {
  const platform = await openPlatform(loadConfig({ ...env, LOG_LEVEL: "silent" }), { name: "bench" });
  try {
    const tenantId = await platform.tenancy.ensureTenant(name);
    const { key } = await platform.tenancy.createKey({ tenantId, role: "owner", subject: "bench" });
    return { tenantId, headers: { authorization: `Bearer ${key}`, "content-type": "application/json" } };
  } finally {
    await platform.close();
  }
}
