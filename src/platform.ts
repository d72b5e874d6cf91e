import { openAreas } from "./areas.ts";
import { openBatches } from "./batches/open-batches.ts";
import type { Config } from "./config/config.ts";
import { openGateway } from "./gateway/gateway.ts";
import { makeCustomProviders } from "./gateway/providers/custom/custom-providers.ts";
import { isCustom } from "./gateway/providers/registry.ts";
import { makeMemory } from "./isolation/memory.ts";
import { makePresence, type Presence } from "./isolation/pace.ts";
import { makeJobs } from "./jobs/jobs.ts";
import { openQueueClient } from "./jobs/queue-client.ts";
import { queues as productQueues, type QueueDefinition } from "./jobs/queues.ts";
import { makeWaits } from "./jobs/waits.ts";
import { type Disposables, withDisposables } from "./lib/disposables.ts";
import { type Logger, makeLogger } from "./observe/logger.ts";
import { makeMetrics } from "./observe/metrics/metrics.ts";
import { openRedis } from "./store/redis/redis.ts";
import { openStore, type Store } from "./store/store.ts";
import { makeCallTexts } from "./tenancy/call-texts.ts";
import { type DataKeys, makeDataKeys, openMasterKeys } from "./tenancy/data-keys.ts";
import { makeFallbacks } from "./tenancy/fallbacks.ts";
import { makeGuardPolicies } from "./tenancy/guard-policies.ts";
import { makeOperator } from "./tenancy/operator.ts";
import { makeOrganizations } from "./tenancy/organizations.ts";
import { makeProviderKeys } from "./tenancy/provider-keys.ts";
import { makeQuotas, type Quotas } from "./tenancy/quotas.ts";
import { makeTenancy } from "./tenancy/tenancy.ts";
import { makeGuardNews } from "./webhooks/guard-news.ts";
import { makeEvaluator } from "./workflows/evaluator.ts";

/** Everything a host (API, worker, script, test) needs of the domain, opened in one place and closed in reverse. */
export type Platform = Awaited<ReturnType<typeof openPlatform>>;

type PlatformOptions = {
  /** Name of the process in logs, as `api` or `worker`. */
  name: string;
  logger?: Logger;
  /** Queues besides the product's own, as a bench's no-op. */
  queues?: readonly QueueDefinition[];
};

/**
 * Opens the domain: store, Redis, queues, gateway. Without `MONGODB_URL` or `REDIS_URL` it starts, or joins, the embedded
 * services of the data folder.
 * @throws AppError `unavailable` when a part does not answer; what was open by then is closed.
 */
export function openPlatform(config: Config, options: PlatformOptions) {
  return withDisposables(async (disposables) => {
    const logger = openLogger(config, options);
    const metrics = makeMetrics({ isCustomProvider: isCustom });
    const { store, redis } = await openServices(config, logger, disposables);
    const work = { store, redis, logger, metrics, config, extra: options.queues ?? [] };
    const { queues, jobs, waits } = await openJobs(work, disposables);
    const dataKeys = await openDataKeys(config, store, logger);
    const memory = makeMemory();
    const evaluator = makeEvaluator(memory);
    disposables.add(() => evaluator.close());
    const base = { store, redis, jobs, schemaChecks: evaluator, logger };
    const quotas = makeQuotas({ store, limits: config.quotas });
    const presence = makePresence();
    const tenants = makeTenantProviders({ ...base, config, dataKeys, quotas, disposables, metrics, presence });
    const { guards, callTexts } = tenants;
    const models = { ...base, ...tenants, config: config.gateway, metrics: metrics.calls };
    const { gateway, batches } = await openModels(models, disposables);
    const tenancy = makeTenancy({ config, store, redis, logger });
    disposables.add(() => tenancy.close());
    const areas = openAreas(
      { ...base, config, waits, gateway, batches, quotas, guards, callTexts, evaluator, dataKeys, tenancy, memory },
      disposables,
    );
    return {
      config,
      logger,
      metrics,
      store,
      redis,
      queues,
      jobs,
      waits,
      gateway,
      batches,
      providerKeys: tenants.keys,
      fallbacks: tenants.fallbacks,
      callTexts,
      guards,
      /** Who asks this process for something, as its host notes it. */
      presence,
      customProviders: tenants.customProviders,
      ...areas,
      tenancy,
      operator: makeOperator({ password: config.http.adminToken, sessions: store.operatorSessions }),
      quotas,
      organizations: makeOrganizations({ store, tenancy, quotas, logger }),
      /** Closes everything, queues before the store. Calling it again waits for the same end. */
      close: disposables.close,
    };
  });
}

function openLogger({ logLevel: level, notices }: Config, { logger, name }: PlatformOptions): Logger {
  const opened = logger ?? makeLogger({ level, name });
  for (const notice of notices) opened.warn(notice);
  return opened;
}

/** Queues, the jobs on them, and what suspended ones wait for. */
async function openJobs(
  deps: Pick<Platform, "store" | "redis" | "logger" | "metrics" | "config"> & { extra: readonly QueueDefinition[] },
  disposables: Disposables,
) {
  const { logger, config } = deps;
  const queues = await openQueueClient({ ...deps, definitions: [...Object.values(productQueues), ...deps.extra] });
  disposables.add(() => queues.close());
  const jobs = makeJobs({ ...deps, queues, metrics: deps.metrics.jobs, config: config.jobs });
  disposables.add(() => jobs.close());
  const onError = (err: unknown) => logger.warn({ err }, "a wait was not ended in time; a sweep will do it");
  const waits = makeWaits({ ...deps, jobs, onError });
  disposables.add(() => waits.close());
  return { queues, jobs, waits };
}

/** What asks models: at once, and by batches. */
async function openModels(
  deps: Parameters<typeof openGateway>[0] & Omit<Parameters<typeof openBatches>[0], "gateway" | "config">,
  disposables: Disposables,
) {
  const gateway = await openGateway(deps);
  disposables.add(() => gateway.close());
  const batches = openBatches({ ...deps, gateway, config: deps.config.batch });
  disposables.add(() => batches.close());
  return { gateway, batches };
}

async function openDataKeys({ identity, dataDir, mongo }: Config, { providerKeys }: Store, logger: Logger) {
  const masterKeys = await openMasterKeys({ setting: identity.masterKey, dataDir, mongoUrl: mongo.url });
  if (masterKeys === null) logger.warn("MASTER_KEY is not set: customers cannot bring keys of their own");
  return makeDataKeys({ store: providerKeys, masterKeys });
}

/** What tenants have of their own for model calls. */
function makeTenantProviders(deps: {
  config: Config;
  store: Store;
  dataKeys: DataKeys;
  quotas: Quotas;
  disposables: Disposables;
  logger: Logger;
  metrics: ReturnType<typeof makeMetrics>;
  presence: Presence;
}) {
  const { store, dataKeys, quotas, disposables, logger } = deps;
  const { gateway, fetch, retention } = deps.config;
  const news = makeGuardNews({ store, logger });
  disposables.add(() => news.close());
  const limits = { quotas, timeouts: gateway.timeouts, allowOrigins: fetch.allowOrigins };
  const customProviders = makeCustomProviders({ store: store.customProviders, dataKeys, ...limits, logger });
  disposables.add(() => customProviders.close());
  return {
    customProviders,
    keys: makeProviderKeys({ store: store.providerKeys, dataKeys, platform: gateway, logger }),
    fallbacks: makeFallbacks(store.tenants),
    guards: makeGuardPolicies(store.tenants, {
      presence: deps.presence,
      onFound: deps.metrics.calls.guarded,
      onBlocked: news.blocked,
    }),
    callTexts: makeCallTexts(store.tenants, {
      isKeptByDefault: gateway.storeContent,
      logDays: retention.callLogDays,
    }),
  };
}

/** The store and Redis, connected. */
async function openServices(config: Config, logger: Logger, disposables: Disposables) {
  const urls = await findServices(config, logger, disposables);
  const store = await openStore({ ...config.mongo, url: urls.mongo, logger });
  disposables.add(() => store.close());
  const redis = await openRedis({ ...config.redis, url: urls.redis, logger });
  disposables.add(() => redis.close());
  return { store, redis };
}

/** The URLs of MongoDB and Redis: those of the settings, else of the embedded services. */
async function findServices(config: Config, logger: Logger, disposables: Disposables) {
  if (config.mongo.url && config.redis.url) return { mongo: config.mongo.url, redis: config.redis.url };
  const { ensureServices } = await import("./embedded/ensure.ts"); // with a store and Redis of their own, processes need none of it
  const services = await ensureServices({
    dataDir: config.dataDir,
    mongo: config.mongo.url === undefined,
    redis: config.redis.url === undefined,
    syncWrites: config.embedded.syncWrites,
    logger,
    hostLogLevel: config.logLevel,
  });
  disposables.add(() => services.close());
  const mongo = config.mongo.url ?? services.mongoUrl;
  const redis = config.redis.url ?? services.redisUrl;
  if (mongo === undefined || redis === undefined) throw new TypeError("the embedded services have no URLs");
  return { mongo, redis };
}
