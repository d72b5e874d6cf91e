import { type Agents, makeAgents } from "./agents/agents.ts";
import { makeCredentials } from "./agents/credentials.ts";
import { type Composite, makeComposite } from "./composite/composite.ts";
import type { Config } from "./config.ts";
import { ensureServices } from "./embedded/ensure.ts";
import { type Gateway, makeGateway } from "./gateway/gateway.ts";
import type { QueueDefinition } from "./jobs/define-queue.ts";
import { type Jobs, makeJobs } from "./jobs/jobs.ts";
import { openQueueClient, type QueueClient } from "./jobs/queue-client.ts";
import { queues as productQueues } from "./jobs/queues.ts";
import type { Work } from "./jobs/work.ts";
import { type Logger, makeLogger } from "./logger.ts";
import { type Metrics, makeMetrics } from "./metrics/metrics.ts";
import { makeEgress } from "./net/egress.ts";
import { makeRag, type Rag } from "./rag/rag.ts";
import { openRedis, type RedisConnections } from "./redis.ts";
import { type Releasers, withReleasers } from "./releasers.ts";
import { openStore, type Store } from "./store/store.ts";
import { makeDataKeys } from "./tenancy/data-keys.ts";
import { type Fallbacks, makeFallbacks } from "./tenancy/fallbacks.ts";
import { openMasterKeys } from "./tenancy/master-keys.ts";
import { makeOrganizations, type Organizations } from "./tenancy/organizations.ts";
import { makeProviderKeys, type ProviderKeys } from "./tenancy/provider-keys.ts";
import { makeQuotas, type Quotas } from "./tenancy/quotas.ts";
import { makeTenancy, type Tenancy } from "./tenancy/tenancy.ts";
import { type Callbacks, makeCallbacks } from "./webhooks/callbacks.ts";
import { makeWebhooks, type Webhooks } from "./webhooks/webhooks.ts";
import { makeEvaluator } from "./workflows/evaluator.ts";
import { makeWorkflows, type Workflows } from "./workflows/workflows.ts";

/** Everything a host (API, worker, script, test) needs of the domain, opened in one place and closed in reverse. */
export type Platform = {
  config: Config;
  logger: Logger;
  metrics: Metrics;
  store: Store;
  redis: RedisConnections;
  queues: QueueClient;
  jobs: Jobs;
  gateway: Gateway;
  providerKeys: ProviderKeys;
  fallbacks: Fallbacks;
  rag: Rag;
  composite: Composite;
  agents: Agents;
  workflows: Workflows;
  /** Every kind of durable work. */
  works: readonly Work[];
  webhooks: Webhooks;
  callbacks: Callbacks;
  tenancy: Tenancy;
  quotas: Quotas;
  organizations: Organizations;
  /** Closes everything, queues before the store. Calling it again waits for the same end. */
  close(): Promise<void>;
};

export type PlatformOptions = {
  /** Name of the process in logs, as `api` or `worker`. */
  name: string;
  logger?: Logger;
  /** Queues besides the product's own, as a bench's no-op. */
  queues?: readonly QueueDefinition[];
};

/**
 * Opens the domain: store, Redis, queues, gateway. Without `MONGODB_URL` or `REDIS_URL` it starts, or joins, the embedded
 * services of the data folder.
 * @throws AppError `unavailable` when a part does not answer; whatever was open by then is closed.
 */
export function openPlatform(config: Config, options: PlatformOptions): Promise<Platform> {
  return withReleasers(async (releasers) => {
    const logger = options.logger ?? makeLogger({ level: config.logLevel, name: options.name });
    const metrics = makeMetrics();
    const urls = await findServices(config, logger, releasers);
    const store = await openStore({ ...config.mongo, url: urls.mongo, logger });
    releasers.add(() => store.close());
    const redis = await openRedis({ url: urls.redis, prefix: config.redis.prefix, logger });
    releasers.add(() => redis.close());
    const definitions = [...Object.values(productQueues), ...(options.queues ?? [])];
    const queues = openQueueClient({ redis, definitions, logger });
    releasers.add(() => queues.close());
    const jobs = makeJobs({ store, redis, queues, logger, metrics: metrics.jobs, config: config.jobs });
    releasers.add(() => jobs.close());
    const dataKeys = await openDataKeys(config, store, logger);
    const providerKeys = makeProviderKeys({ store: store.providerKeys, dataKeys, platform: config.gateway, logger });
    const fallbacks = makeFallbacks(store.tenants);
    const base = { store, redis, jobs, logger };
    const { calls } = metrics;
    const gateway = makeGateway({ ...base, config: config.gateway, keys: providerKeys, fallbacks, metrics: calls });
    releasers.add(() => gateway.close());
    const rag = makeRag({ config, store, jobs, gateway, logger });
    releasers.add(() => rag.close());
    const composite = makeComposite({ store, jobs, gateway });
    const egress = makeEgress({ allowOrigins: config.fetch.allowOrigins, timeoutMs: config.fetch.timeoutMs });
    releasers.add(() => egress.close());
    const webhooks = makeWebhooks({ store: store.webhookSecrets, dataKeys, egress });
    const callbacks = makeCallbacks({ store: store.callbacks, jobs, webhooks, egress, logger });
    const evaluator = makeEvaluator();
    releasers.add(() => evaluator.close());
    const quotas = makeQuotas({ store, limits: config.quotas });
    const workflows = makeWorkflows({ store, jobs, gateway, rag, webhooks, egress, quotas, evaluator, logger });
    const credentials = makeCredentials(dataKeys);
    const agents = makeAgents({ store, jobs, gateway, rag, composite, workflows, egress, credentials, quotas });
    const { batches, fileBatches } = gateway;
    const works = [rag, agents, workflows, composite, batches, fileBatches].map(({ work }) => work);
    const tenancy = makeTenancy({ config, store, redis, logger });
    releasers.add(() => tenancy.close());
    const organizations = makeOrganizations({ store, tenancy, logger });
    return {
      config,
      logger,
      metrics,
      store,
      redis,
      queues,
      jobs,
      gateway,
      providerKeys,
      fallbacks,
      rag,
      composite,
      agents,
      workflows,
      works,
      webhooks,
      callbacks,
      tenancy,
      quotas,
      organizations,
      close: releasers.close,
    };
  });
}

async function openDataKeys({ identity, dataDir, mongo }: Config, { providerKeys }: Store, logger: Logger) {
  const masterKeys = await openMasterKeys({ setting: identity.masterKey, dataDir, mongoUrl: mongo.url });
  if (masterKeys === null) logger.warn("MASTER_KEY is not set: customers cannot bring keys of their own");
  return makeDataKeys({ store: providerKeys, masterKeys });
}

/** The URLs of MongoDB and Redis: those of the settings, else of the embedded services. */
async function findServices(config: Config, logger: Logger, releasers: Releasers) {
  if (config.mongo.url && config.redis.url) return { mongo: config.mongo.url, redis: config.redis.url };
  const services = await ensureServices({
    dataDir: config.dataDir,
    mongo: config.mongo.url === undefined,
    redis: config.redis.url === undefined,
    logger,
    hostLogLevel: config.logLevel,
  });
  releasers.add(() => services.close());
  const mongo = config.mongo.url ?? services.mongoUrl;
  const redis = config.redis.url ?? services.redisUrl;
  if (mongo === undefined || redis === undefined) throw new TypeError("the embedded services did not tell their URLs");
  return { mongo, redis };
}
