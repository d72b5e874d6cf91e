import { LRUCache } from "lru-cache";
import type { Config } from "../config/config.ts";
import { AppError } from "../lib/errors.ts";
import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import type { Store } from "../store/store.ts";

type Counted = Pick<
  Store,
  | "agents"
  | "workflows"
  | "documents"
  | "vectorStoreBatches"
  | "collections"
  | "files"
  | "apiKeys"
  | "widgetKeys"
  | "organizations"
  | "use"
  | "jobs"
  | "customProviders"
  | "answers"
>;
type Quota = {
  /** What an operator can raise, if there is anything. */
  setting?: string;
  /** What it limits, in words. */
  what: string;
  /** How many a tenant has; need not count further than `limit`. */
  counterOf(store: Counted): (tenantId: string, limit: number) => Promise<number>;
  /** What a refused caller can do, where deleting is not it. */
  advice?: string;
  /** Whether they end soon, so that a refused call is worth repeating. */
  passes?: true;
};

/** Runs are kept as evidence: their age alone removes them, and no call of a tenant. */
const RUNS_ADVICE = "Ask the operator for more, or to keep runs for fewer days.";

/** What a tenant may have a limited number of. */
const registry = {
  agents: { setting: "MAX_DEFINITIONS", what: "agents", counterOf: ({ agents }) => agents.count },
  workflows: { setting: "MAX_DEFINITIONS", what: "workflows", counterOf: ({ workflows }) => workflows.count },
  documents: { setting: "MAX_DOCUMENTS", what: "documents", counterOf: ({ documents }) => documents.countAll },
  collections: { setting: "MAX_COLLECTIONS", what: "collections", counterOf: ({ collections }) => collections.count },
  vectorStoreBatches: {
    setting: "MAX_COLLECTIONS",
    what: "batches of files in vector stores",
    counterOf: ({ vectorStoreBatches }) => vectorStoreBatches.count,
    advice: "Delete vector stores, or wait: each is kept for seven days.",
  },
  files: { setting: "MAX_FILES", what: "files", counterOf: ({ files }) => files.count },
  keys: { setting: "MAX_KEYS", what: "API keys", counterOf: ({ apiKeys }) => apiKeys.count },
  widgetKeys: { setting: "MAX_KEYS", what: "widget keys", counterOf: ({ widgetKeys }) => widgetKeys.count },
  organizations: {
    setting: "MAX_ORGANIZATIONS",
    what: "founded organizations",
    counterOf: ({ organizations }) => organizations.countFounded,
    advice: "Ask the operator for more.",
  },
  storedBytes: {
    setting: "MAX_STORED_BYTES",
    what: "bytes of documents, files, responses and conversations",
    counterOf:
      ({ use }) =>
      (tenantId) =>
        use.bytes(tenantId, "sources"),
  },
  idempotencyBytes: {
    setting: "a twentieth of MAX_STORED_BYTES",
    what: "bytes of responses that are kept for repeats",
    counterOf:
      ({ use }) =>
      (tenantId) =>
        use.bytes(tenantId, "responses"),
    advice: "Call without an Idempotency-Key, or wait: each is kept for 24 hours.",
  },
  customProviders: {
    what: "custom providers",
    counterOf: ({ customProviders }) => customProviders.count,
  },
  feedback: {
    what: "rated answers",
    counterOf: ({ answers }) => answers.countRated,
    advice: "Each is kept for as long as call logs.",
  },
  runs: {
    setting: "MAX_RUNS",
    what: "kept runs of agents, workflows and composites",
    counterOf:
      ({ use }) =>
      (tenantId) =>
        use.records(tenantId, "runs"),
    advice: RUNS_ADVICE,
  },
  runBytes: {
    setting: "MAX_STORED_BYTES",
    what: "bytes of kept runs of agents, workflows and composites",
    counterOf:
      ({ use }) =>
      (tenantId) =>
        use.bytes(tenantId, "runs"),
    advice: RUNS_ADVICE,
  },
  callLogBytes: {
    setting: "half of MAX_STORED_BYTES",
    what: "bytes of call logs",
    counterOf:
      ({ use }) =>
      (tenantId) =>
        use.bytes(tenantId, "callLogs"),
  },
  openJobs: {
    setting: "MAX_OPEN_JOBS",
    what: "open jobs",
    counterOf: ({ jobs }) => jobs.countOpen,
    advice: "Wait until some have ended.",
    passes: true,
  },
  openBatches: {
    setting: "MAX_OPEN_BATCHES",
    what: "open batches",
    counterOf: ({ files }) => files.countOpenBatches,
    advice: "Wait until some have ended.",
    passes: true,
  },
} as const satisfies Record<string, Quota>;
type QuotaName = keyof typeof registry;
export const quotaNames = Object.keys(registry) as [QuotaName, ...QuotaName[]];

/** Counts whose allowances are remembered. */
const MAX_COUNTS = 10_000;
/** When a call that open jobs or batches refuse is worth repeating, in ms. */
const RETRY_AFTER_MS = 5_000;

export type Quotas = ReturnType<typeof makeQuotas>;

/** The quotas of every tenant. */
export function makeQuotas({ store, limits }: { store: Counted; limits: Config["quotas"] }) {
  const count = (tenantId: string, name: QuotaName) => registry[name].counterOf(store)(tenantId, limits[name]);
  /** What was allowed by each count so far. */
  const taken = new LRUCache<string, number>({ max: MAX_COUNTS });
  // Counting many takes long, so a count holds for seconds, and what is allowed meanwhile is added to it, also during a new one.
  const counts = makeStaleWhileRevalidate(async (key) => {
    const [name = "", tenantId = ""] = key.split(" ");
    const before = taken.get(key) ?? 0;
    const used = await count(tenantId, name as QuotaName); // as `check` joined it
    return { used: used + Math.max(0, (taken.get(key) ?? 0) - before) };
  });
  return {
    /**
     * Takes `amount` more; call the result with what the call turns out to take besides. Several processes at once may allow
     * a little too much.
     * @throws AppError `quota_exceeded` beyond the limit; `too_many_concurrent` where waiting helps.
     */
    async check(tenantId: string, name: QuotaName, amount = 1): Promise<(more: number) => void> {
      const limit = limits[name];
      const key = `${name} ${tenantId}`;
      let counted = await counts.find(key);
      if (counted.used + amount > limit) {
        counts.forget(key); // some may have been deleted since
        counted = await counts.find(key);
      }
      if (counted.used + amount > limit) throw exceeded(name, limit);
      counted.used += amount;
      taken.set(key, (taken.get(key) ?? 0) + amount);
      return (more) => {
        counted.used += more;
        taken.set(key, (taken.get(key) ?? 0) + more);
      };
    },
    /** Each quota with its use. */
    async usage(tenantId: string): Promise<Record<QuotaName, { used: number; limit: number }>> {
      const each = quotaNames.map(async (name) => [name, { used: await count(tenantId, name), limit: limits[name] }]);
      return Object.fromEntries(await Promise.all(each));
    },
  };
}

function exceeded(name: QuotaName, limit: number): AppError {
  const quota: Quota = registry[name];
  const { what, setting, advice = "Delete some first." } = quota;
  const message = `The call would exceed the tenant's quota of ${limit} ${what}${setting ? ` (${setting})` : ""}. ${advice}`;
  const details = { quota: name, limit };
  if (!quota.passes) return new AppError("quota_exceeded", message, { details });
  return new AppError("too_many_concurrent", message, { details, retryable: true, retryAfterMs: RETRY_AFTER_MS });
}
