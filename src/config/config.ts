import { resolve } from "node:path";
import { z } from "zod";
import { ConfigError } from "../lib/errors.ts";
import { languageFile } from "../lib/ocr-languages.ts";
import { isAddressOrRange } from "../net/client-address.ts";
import { readRedisUrl, redisUrlForm } from "../store/redis/redis-url.ts";
import { masterKeyForm } from "./master-key.ts";
import { apiKeyName, baseUrlName, ofKeyProviders, providerSettings } from "./provider-settings.ts";
import { keptSettings, toQuotas, toRetention } from "./quotas-and-retention.ts";
import { warnOfRemoved } from "./removed-settings.ts";
import { withSecretFiles } from "./secret-files.ts";
import { count, flag, fraction, headers, list, logLevel, part, setting, textAs, url } from "./setting-forms.ts";

/** Every setting that the product reads, in the order of the README's table. Nothing else reads the environment. */
export const settings = {
  PORT: setting(count(0, 65_535).default(3000), "Port of the API; 0 takes a free one"),
  HOST: setting(z.string().default("127.0.0.1"), "Address that the API binds to"),
  PUBLIC_URL: setting(
    url.transform((text) => text.replace(/\/$/, "")).optional(),
    "Address by which clients reach the API, as `https://ai.example.com`",
    "the `Host` of the request",
  ),
  ALLOWED_HOSTS: setting(
    list.default([]),
    "Names by which `/mcp` is called besides `HOST` and loopback, as `ai.example.com`, by commas; `*`: any",
  ),
  TRUSTED_PROXIES: setting(
    list
      .default([])
      .refine((all) => all.every(isAddressOrRange), "must be IP addresses or ranges, as 10.0.0.0/8, by commas"),
    "Addresses and ranges of the proxies whose `X-Forwarded-For` names the client, as `10.0.0.0/8`, by commas",
    "the header is ignored",
  ),
  DATA_DIR: setting(z.string().default(".data"), "Folder of the embedded services, owned by the user who starts them"),
  MONGODB_URL: setting(
    textAs(/^mongodb(\+srv)?:\/\/./, "must be a connection string, as mongodb://127.0.0.1:27017"),
    "MongoDB or Atlas",
    "embedded server",
  ),
  STORE_SYNC_WRITES: setting(
    flag.default(false),
    "The embedded store acknowledges a write once it is on the disk; else a loss of power may take the last ones",
  ),
  MONGODB_DB: setting(z.string().default("switchyard"), "Database name"),
  REDIS_URL: setting(
    redisUrlForm,
    "Redis, with `noeviction`; by Sentinels as `redis+sentinel://host-a,host-b/primary`",
    "private redis-server",
  ),
  REDIS_CLUSTER: setting(flag.default(false), "`REDIS_URL` names one or more servers, by commas, of a Redis Cluster"),
  REDIS_PREFIX: setting(z.string().default("switchyard"), "Prefix of every key in Redis"),
  ADMIN_TOKEN: setting(
    z.string().min(12, "must have at least 12 characters").optional(),
    "The operator's credential for Bull Board, `/metrics` and `/operator`",
    "all of them are off",
  ),
  BOARD_WRITES: setting(flag.default(false), "Bull Board may pause queues and remove jobs; else it only shows them"),
  METRICS_PORT: setting(
    count(0, 65_535).optional(),
    "Port of `/metrics`, `/healthz` and `/readyz` of this process alone, on a worker too, open to anyone who reaches it",
    "none",
  ),
  READY_QUEUE_LAG_MS: setting(
    count(1_000, 86_400_000).optional(),
    "Wait of a job, in ms, that makes `/readyz` a 503",
    "never",
  ),
  MASTER_KEY: setting(
    masterKeyForm,
    "Wraps the keys that encrypt customers' provider keys; the first of several wraps, the others only unwrap",
    "with a store on this machine: made once, in `DATA_DIR`",
  ),
  BOOTSTRAP_API_KEY: setting(
    textAs(/^sk_[0-9A-Za-z]{32}$/, "must be sk_ and 32 letters or digits"),
    "An owner's key of tenant `default`, stored at start when it is missing",
  ),
  AUTH_ISSUER: setting(url.optional(), "Authorization server whose access tokens are keys of tenants", "none"),
  AUTH_AUDIENCE: setting(
    list.default([]),
    "Audiences of tokens that are made for us, by commas",
    "`/mcp` and `/` of `PUBLIC_URL`",
  ),
  AUTH_JWKS_URL: setting(url.optional(), "JWKS URL of the authorization server", "from its metadata"),
  AUTH_TENANT_CLAIM: setting(
    z.string().min(1).default("switchyard_tenant"),
    "Claim of a token that holds the name or id of its tenant",
  ),
  WORKERS: setting(count(0, 64).default(2), "Worker processes that `npm start` runs"),
  WORKER_QUEUES: setting(list.optional(), "Queues that a worker takes jobs from, separated by commas", "all"),
  WORKER_CONCURRENCY: setting(part(64).default(1), "Factor on every queue's concurrency"),
  EDGE_BASE_URL: setting(url.optional(), "An OpenAI-compatible server for the `edge` provider", "offline model"),
  EDGE_API_KEY: setting(z.string().optional(), "Its key"),
  EDGE_MODEL: setting(z.string().optional(), "Its chat model", "all that its `GET /models` lists"),
  EDGE_EMBEDDING_MODEL: setting(z.string().optional(), "Its embedding model", "offline embedding"),
  EMBEDDING_MODEL: setting(z.string().optional(), "Embeds documents; a tenant may choose another", "the edge's"),
  ...providerSettings(),
  PROVIDER_MAX_ATTEMPTS: setting(
    count(1, 20).default(5),
    "Most attempts at one model call, those at fallbacks included",
  ),
  CACHE_BYTES_PER_TENANT: setting(
    count(0, 1 << 30).default(16 << 20),
    "Bytes of a tenant's responses in the cache; 0: none",
  ),
  BATCH_MAX_LINES: setting(count(1, 10_000).default(500), "Chats of one batch; a full one is submitted at once"),
  BATCH_COLLECT_MS: setting(count(10, 3_600_000).default(10_000), "How long a batch collects chats at most, in ms"),
  BATCH_POLL_MS: setting(count(10, 3_600_000).default(60_000), "Longest pause between two checks of a batch, in ms"),
  TOOL_WAIT_MS: setting(count(0, 600_000).default(45_000), "How long a tool call waits for its job at most, in ms"),
  RUN_WAIT_MS: setting(
    count(100, 900_000).default(600_000),
    "How long a chat with an agent or a composite waits for its run at most, in ms",
  ),
  FETCH_ALLOW_ORIGINS: setting(list.default([]), "Origins that may be fetched although they are not public, by commas"),
  RATE_LIMIT_RPM: setting(
    count(1, 10_000_000).default(600),
    "Requests a minute of one tenant; all its widget keys together may take half of them",
  ),
  RATE_LIMIT_CONCURRENT: setting(
    count(1, 1_000_000).default(100),
    "Requests at once of one tenant in one API process; all its widget keys together may take half of them",
  ),
  UPLOAD_BYTES_PER_SECOND: setting(
    count(64 << 10, 1_000_000_000).default(4 << 20),
    "Bytes a second of one tenant's bodies above 64 KiB in one API process; 16 s of it at once",
  ),
  WIDGET_RATE_LIMIT_RPM: setting(count(1, 1_000_000).default(60), "Requests a minute of a widget key at an IP or /64"),
  WIDGET_MAX_TOKENS: setting(
    count(1, 1_000_000).default(1_024),
    "Most tokens, and the default, of a widget key's response",
  ),
  ...keptSettings,
  MAX_JSON_BYTES: setting(
    count(1_024, 1 << 30).default(4 << 20),
    "Largest JSON body, in bytes; for `/mcp` 2 MiB at most, for `/rag/ingest` and `/v1/messages/batches` 5 times as much",
  ),
  MAX_SOURCE_BYTES: setting(count(1_024, 1 << 30).default(50 << 20), "Largest file, uploaded or fetched, in bytes"),
  PARSE_TIMEOUT_MS: setting(count(100, 600_000).default(60_000), "Longest time for parsing one source, in ms"),
  OCR_LANGUAGES: setting(
    list
      .default([])
      .refine(
        (all) => all.every((code) => languageFile(code) !== undefined),
        "must be languages whose data are installed, as eng,deu; others by `npm install @tesseract.js-data/fra`",
      ),
    "Languages in which the text of PDF pages that are pictures is recognized, as `eng,deu`, by commas",
    "such pages are not read",
  ),
  PROVIDER_FIRST_BYTE_TIMEOUT_MS: setting(count(10, 600_000).default(60_000), "A provider's first byte, in ms"),
  PROVIDER_ANSWER_TIMEOUT_MS: setting(
    count(10, 3_600_000).optional(),
    "A response that is not streamed, in ms",
    "5 times the first byte's",
  ),
  PROVIDER_IDLE_TIMEOUT_MS: setting(count(10, 600_000).default(30_000), "Silence in a provider's stream, in ms"),
  JOB_LEASE_MS: setting(
    count(200, 600_000).default(15_000),
    "A worker that is silent for this long loses its job, in ms; after 5 times as long, a batch that nobody can find at its provider is submitted again",
  ),
  RECONCILE_EVERY_MS: setting(count(100, 600_000).default(5_000), "How often orphaned jobs are searched for, in ms"),
  STORE_TIMEOUT_MS: setting(count(100, 60_000).default(5_000), "Longest wait for MongoDB, in ms"),
  SHUTDOWN_GRACE_MS: setting(count(0, 600_000).default(30_000), "Time that running work has to end at SIGTERM, in ms"),
  STORE_COMPLETION_CONTENT: setting(
    flag.default(false),
    "Keep the texts of chats in their log records, of tenants that did not choose (`PUT /settings`)",
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: setting(url.optional(), "OTLP over HTTP, as `http://collector:4318`", "tracing is off"),
  OTEL_EXPORTER_OTLP_HEADERS: setting(headers.optional(), "Headers that the collector requires, as `name=value,…`"),
  OTEL_SERVICE_NAME: setting(z.string().optional(), "Its name in traces", "`switchyard-api`, `switchyard-worker`"),
  OTEL_TRACES_SAMPLER_ARG: setting(fraction.default(1), "Share of the traces that are kept"),
  LOG_LEVEL: setting(logLevel.default("info"), "Least level that is logged"),
} as const;

/** Names that settings had before, which still count where the new one is not set. */
const formerNames: Partial<Record<keyof typeof settings, string>> = { PROVIDER_MAX_ATTEMPTS: "PROVIDER_MAX_TRIES" };

type Values = { [K in keyof typeof settings]: z.output<(typeof settings)[K]["schema"]> };

/** Reads and checks the environment and its files of secrets. Empty values count as unset. @throws ConfigError that lists every bad variable. */
export function loadConfig(given: Record<string, string | undefined> = process.env) {
  const values: Record<string, unknown> = {};
  const { env, problems } = withSecretFiles(given, Object.keys(settings));
  for (const [name, { schema }] of Object.entries(settings)) {
    const result = schema.safeParse(env[name] || env[formerNames[name as keyof typeof settings] ?? ""] || undefined);
    if (result.success) values[name] = result.data;
    else problems.push(`${name}: ${result.error.issues[0]?.message}`);
  }
  if (problems.length > 0) throw new ConfigError(`The settings are not valid.\n  ${problems.join("\n  ")}`);
  const config = { ...toConfig(values as Values), notices: warnOfRemoved(given) }; // every key of `settings` was parsed by its own schema just above
  const problem = redisProblem(config.redis);
  if (problem) throw new ConfigError(`The settings are not valid.\n  ${problem}`);
  return config;
}

/** What of the two settings of Redis does not fit together. */
function redisProblem({ url, isCluster }: Config["redis"]): string | undefined {
  if (isCluster && url === undefined) return "REDIS_CLUSTER: needs REDIS_URL";
  if (url === undefined || readRedisUrl(url, isCluster) !== null) return undefined;
  if (!isCluster) return "REDIS_URL: several servers are those of a cluster, which needs REDIS_CLUSTER=true";
  return "REDIS_URL: must be redis:// or rediss:// with servers of the cluster, by commas, and no database but 0";
}

/** `notices`: what an operator should know of the settings, a sentence each. */
export type Config = ReturnType<typeof toConfig> & { notices: readonly string[] };

function toConfig(v: Values) {
  const dataDir = resolve(v.DATA_DIR);
  return {
    dataDir,
    logLevel: v.LOG_LEVEL,
    shutdownGraceMs: v.SHUTDOWN_GRACE_MS,
    http: {
      port: v.PORT,
      host: v.HOST,
      publicUrl: v.PUBLIC_URL,
      adminToken: v.ADMIN_TOKEN,
      boardWrites: v.BOARD_WRITES,
      allowedHosts: [v.HOST, ...v.ALLOWED_HOSTS],
      trustedProxies: v.TRUSTED_PROXIES,
    },
    metrics: { host: v.HOST, port: v.METRICS_PORT },
    tracing: {
      endpoint: v.OTEL_EXPORTER_OTLP_ENDPOINT,
      headers: v.OTEL_EXPORTER_OTLP_HEADERS ?? {},
      serviceName: v.OTEL_SERVICE_NAME,
      share: v.OTEL_TRACES_SAMPLER_ARG,
    },
    health: { maxQueueLagMs: v.READY_QUEUE_LAG_MS },
    tools: { waitMs: v.TOOL_WAIT_MS },
    mongo: { url: v.MONGODB_URL, db: v.MONGODB_DB, timeoutMs: v.STORE_TIMEOUT_MS },
    redis: toRedis(v),
    embedded: { syncWrites: v.STORE_SYNC_WRITES },
    tokens: toTokens(v),
    identity: { bootstrapApiKey: v.BOOTSTRAP_API_KEY, masterKey: v.MASTER_KEY },
    quotas: toQuotas(v),
    retention: toRetention(v),
    responses: { keptDays: v.RESPONSE_DAYS, maxConversationBytes: v.MAX_JSON_BYTES },
    workers: { count: v.WORKERS, queues: v.WORKER_QUEUES, concurrencyFactor: v.WORKER_CONCURRENCY },
    jobs: { leaseMs: v.JOB_LEASE_MS, reconcileEveryMs: v.RECONCILE_EVERY_MS, runWaitMs: v.RUN_WAIT_MS },
    gateway: {
      edge: {
        baseUrl: v.EDGE_BASE_URL,
        apiKey: v.EDGE_API_KEY,
        model: v.EDGE_MODEL,
        embeddingModel: v.EDGE_EMBEDDING_MODEL,
      },
      providers: ofKeyProviders((id) => ({ apiKey: v[apiKeyName(id)], baseUrl: v[baseUrlName(id)] })),
      maxAttempts: v.PROVIDER_MAX_ATTEMPTS,
      cacheBytesPerTenant: v.CACHE_BYTES_PER_TENANT,
      batch: {
        maxItems: v.BATCH_MAX_LINES,
        collectMs: v.BATCH_COLLECT_MS,
        pollMs: v.BATCH_POLL_MS,
        settleMs: 5 * v.JOB_LEASE_MS,
      },
      timeouts: {
        connectMs: 5_000,
        firstByteMs: v.PROVIDER_FIRST_BYTE_TIMEOUT_MS,
        answerMs: v.PROVIDER_ANSWER_TIMEOUT_MS ?? 5 * v.PROVIDER_FIRST_BYTE_TIMEOUT_MS,
        idleMs: v.PROVIDER_IDLE_TIMEOUT_MS,
      },
      storeContent: v.STORE_COMPLETION_CONTENT,
    },
    fetch: { allowOrigins: v.FETCH_ALLOW_ORIGINS, timeoutMs: 30_000, maxBytes: v.MAX_SOURCE_BYTES },
    parse: { timeoutMs: v.PARSE_TIMEOUT_MS, ocrLanguages: v.OCR_LANGUAGES },
    rag: { embeddingModel: v.EMBEDDING_MODEL },
    limits: toLimits(v),
  };
}

/** Scripts and commands take several keys at once, so those of a cluster are in one slot: its hash is that of the braces. */
function toRedis({ REDIS_URL: url, REDIS_CLUSTER: isCluster, REDIS_PREFIX: prefix }: Values) {
  return { url, isCluster, prefix: isCluster ? `{${prefix}}` : prefix };
}

function toTokens(v: Values) {
  const ours = v.PUBLIC_URL === undefined ? [] : [`${v.PUBLIC_URL}/mcp`, v.PUBLIC_URL, `${v.PUBLIC_URL}/`];
  const audience = v.AUTH_AUDIENCE.length > 0 ? v.AUTH_AUDIENCE : ours;
  return { issuer: v.AUTH_ISSUER, audience, jwksUrl: v.AUTH_JWKS_URL, tenantClaim: v.AUTH_TENANT_CLAIM };
}

/** All widget keys of a tenant together take this part of its limits at most, so that a flood of visitors shuts out nobody else. */
const WIDGET_SHARE = 0.5;

function toLimits(v: Values) {
  return {
    requestsPerMinute: v.RATE_LIMIT_RPM,
    concurrentRequests: v.RATE_LIMIT_CONCURRENT,
    widget: { requestsPerMinute: v.WIDGET_RATE_LIMIT_RPM, concurrentRequests: 4 },
    widgetShare: {
      requestsPerMinute: Math.max(1, Math.floor(v.RATE_LIMIT_RPM * WIDGET_SHARE)),
      concurrentRequests: Math.max(1, Math.floor(v.RATE_LIMIT_CONCURRENT * WIDGET_SHARE)),
    },
    widgetMaxTokens: v.WIDGET_MAX_TOKENS,
    jsonBytes: v.MAX_JSON_BYTES,
    contentBytes: 5 * v.MAX_JSON_BYTES,
    sourceBytes: v.MAX_SOURCE_BYTES,
    uploadBytesPerSecond: v.UPLOAD_BYTES_PER_SECOND,
  };
}
