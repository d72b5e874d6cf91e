import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Config } from "../../src/config/config.ts";
import { ensureServices, type Services } from "../../src/embedded/ensure.ts";
import { withDisposables } from "../../src/lib/disposables.ts";
import { listen } from "../../src/lib/listen.ts";
import { keepSecret, openDataFolder } from "../../src/lib/private-files.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { apiFlags, productFile, supervise, workerFlags } from "./children.ts";

export type LocalStack = {
  url: string;
  boardUrl: string;
  apiKey: string;
  adminToken: string;
  workers: number;
  /** How documents are searched, in one line. */
  search: string;
  close(): Promise<void>;
};

/**
 * Everything on one machine: the embedded services that the settings do not name elsewhere, the API, and the workers, each
 * as a process of its own that is started again when it dies. The first owner's key and the operator's token are made once
 * and kept in the data folder.
 */
export function runStack(config: Config, options: { say(text: string): void; env?: Record<string, string> }) {
  return withDisposables<LocalStack>(async (disposables) => {
    const { dataDir, shutdownGraceMs } = config;
    await openDataFolder(dataDir);
    const keep = (name: string, make: () => string) => keepSecret(join(dataDir, name), make);
    const apiKey = config.identity.bootstrapApiKey ?? (await keep("bootstrap.key", () => `sk_${randomLetters(32)}`));
    const adminToken = config.http.adminToken ?? (await keep("admin.token", () => randomLetters(24)));
    await rejectTakenPort(config.http);
    const services = await startServices(config, options.say);
    disposables.add(() => services.close());
    const env = {
      LOG_LEVEL: "warn",
      ...definedOnly(process.env),
      ...options.env,
      DATA_DIR: dataDir,
      MONGODB_URL: config.mongo.url ?? services.mongoUrl ?? "",
      REDIS_URL: config.redis.url ?? services.redisUrl ?? "",
      BOOTSTRAP_API_KEY: apiKey,
      ADMIN_TOKEN: adminToken,
    };
    const run = (name: string, script: string, { place, flags }: { place: number; flags: readonly string[] }) =>
      supervise({
        script: productFile(script),
        flags,
        env: { ...env, ...metricsPort(config, place) },
        graceMs: shutdownGraceMs,
        // PORT=0 took a free port, which stays the one that clients know.
        envAgain: ({ url }) => (typeof url === "string" ? { PORT: new URL(url).port } : {}),
        onRestart: (code, signal) => options.say(`${name} ended (${signal ?? `code ${code}`}); starting it again …`),
      });
    options.say(`starting the API and ${config.workers.count} workers …`);
    const api = await run("the API", "../../api/server.ts", { place: 0, flags: apiFlags });
    disposables.add(() => api.close());
    const workers = await Promise.all(
      Array.from({ length: config.workers.count }, (_, index) =>
        run(`worker ${index + 1}`, "../../workers/main.ts", { place: index + 1, flags: workerFlags }),
      ),
    );
    disposables.add(async () => void (await Promise.all(workers.map((worker) => worker.close()))));
    const url = String(api.ready.url);
    return {
      url,
      boardUrl: `${url}/admin/queues`,
      apiKey,
      adminToken,
      workers: workers.length,
      search: String(api.ready.search),
      close: disposables.close,
    };
  });
}

/** Starts the embedded services that the settings do not name elsewhere, or joins those of the data folder. */
async function startServices(config: Config, say: (text: string) => void): Promise<Services> {
  const mongo = config.mongo.url === undefined;
  const redis = config.redis.url === undefined;
  if (!mongo && !redis) return { close: async () => undefined };
  const parts = [...(mongo ? ["store"] : []), ...(redis ? ["Redis"] : [])].join(" and ");
  say(`starting the embedded ${parts} …`);
  const logger = makeLogger({ level: "error", name: "start" });
  const services = await ensureServices({
    dataDir: config.dataDir,
    mongo,
    redis,
    syncWrites: config.embedded.syncWrites,
    logger,
  });
  if (services.isJoined) say(`joined the ${parts} of another process, in ${config.dataDir}`);
  return services;
}

/** @throws ConfigError when another process listens at the API's port. */
async function rejectTakenPort({ host, port }: Config["http"]): Promise<void> {
  if (port === 0) return;
  const server = createServer();
  await listen(server, { host, port, setting: "HOST and PORT" });
  await once(server.close(), "close");
}

/** On one machine each process has its own port of metrics: the API that of the setting, the workers those after it. */
function metricsPort({ metrics: { port } }: Config, place: number): Record<string, string> {
  return port === undefined || port === 0 ? {} : { METRICS_PORT: String(port + place) };
}

function randomLetters(length: number): string {
  const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  let text = "";
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < 248 && text.length < length) text += alphabet[byte % 62]; // 248 = 4 × 62: every letter equally likely
    }
  }
  return text;
}

function definedOnly(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
