import type { Config } from "../config/config.ts";
import { makeShares } from "../isolation/shares.ts";
import { notFound } from "../lib/errors.ts";
import type { Logger } from "../observe/logger.ts";
import type { CallMetrics } from "../observe/metrics/call-metrics.ts";
import type { RedisConnections } from "../store/redis/redis.ts";
import type { Store } from "../store/store.ts";
import type { ModelFallbacks } from "../store/tenant-store.ts";
import type { CallTexts } from "../tenancy/call-texts.ts";
import type { Fallbacks } from "../tenancy/fallbacks.ts";
import type { ProviderKeys } from "../tenancy/provider-keys.ts";
import { type CataloguedModel, findModel, makeCatalogue, toModelEntry } from "./catalogue.ts";
import { type Answerer, makeAnswerer } from "./chat/answer.ts";
import { makeForwardedChats } from "./chat/forward.ts";
import { checkFallbacks, findWriter, ignoredBy, listModels, resolveModel, usableModels } from "./chat/plan.ts";
import type { ChatRequest } from "./chat/request.ts";
import { makeResponseCache } from "./chat/response-cache.ts";
import type { SchemaChecks } from "./chat/response-format.ts";
import { countPrompt } from "./count-prompt.ts";
import type { GatewayDeps } from "./deps.ts";
import { makeEmbeddings } from "./embed.ts";
import type { ModelQuery } from "./model-schemas.ts";
import { makeBudgets, requireLeft } from "./money/budget.ts";
import { makeLedger } from "./money/ledger.ts";
import { makeGuarding } from "./money/note-blocked.ts";
import { makeRunBudgets } from "./money/run-budgets.ts";
import { makeFirstNames, makeUsageIncrements } from "./money/usage-increments.ts";
import { makeUsageReports } from "./money/usage-series.ts";
import type { EdgeSettings } from "./providers/edge/models.ts";
import { followServedModels } from "./providers/edge/served-models.ts";
import { openProviders } from "./providers/registry.ts";
import { makeReranking } from "./rerank.ts";
import { makeBreakers } from "./resilience/breaker.ts";

export type Gateway = Awaited<ReturnType<typeof openGateway>>;

type GatewayInput = {
  config: Config["gateway"];
  store: Pick<Store, "completions" | "usage" | "usageSeries" | "budgets" | "runBudgets" | "tenants" | "checkWrites">;
  keys: Pick<ProviderKeys, "find" | "byId">;
  fallbacks: Pick<Fallbacks, "find">;
  guards: GatewayDeps["guards"];
  callTexts: Pick<CallTexts, "areKept" | "hideOld">;
  customProviders: GatewayDeps["customProviders"];
  redis: Pick<RedisConnections, "producer" | "prefix">;
  schemaChecks: SchemaChecks;
  logger: Logger;
  metrics: CallMetrics;
};

/** All model traffic goes through the gateway: it is routed, retried and accounted once. */
export async function openGateway(input: GatewayInput) {
  const { config, store, keys, fallbacks, callTexts, customProviders, logger, metrics } = input;
  const budgets = makeBudgets({ store, logger, onRejection: metrics.budgetRefused });
  const runBudgets = makeRunBudgets({ store, budgets, logger });
  const ledger = makeLedger({ ...store, toIncrements: makeUsageIncrements(), logger, onSettled: metrics.settled });
  const breakers = makeBreakers();
  metrics.watchBreakers(breakers.countOpen);
  const providers = openProviders(config);
  const { catalogue, stop } = await openCatalogue(config.edge, logger);
  const deps: GatewayDeps = {
    catalogue,
    customProviders,
    ...{ providers, keys, fallbacks, budgets, runBudgets },
    breakerOf: breakers.of,
    ledger,
    schemaChecks: input.schemaChecks,
    guards: input.guards,
    callTexts,
    largeStreams: makeShares(LARGE_STREAMS),
    maxAttempts: config.maxAttempts,
  };
  const answerer = makeAnswerer(deps, makeResponseCache({ ...input, bytesPerTenant: config.cacheBytesPerTenant }));
  return {
    /** The dependencies of calls, for src/batches. */
    deps,
    /** Chats with models, planned and then answered. */
    ...answerer,
    /** Plans a chat and answers it. Throws as both do. */
    complete: async (...asked: Parameters<Answerer["plan"]>) => answerer.answer(await answerer.plan(...asked)),
    ...makeEmbeddings(deps),
    ...makeReranking(deps),
    /** Chats that are guarded before they are planned. */
    guarding: makeGuarding(deps),
    /** The surface under which a tenant's call is counted, if the call names one. */
    surfaceOf: makeSurfaces(),
    /** The catalogue as a tenant sees it. */
    models: (tenantId: string, query: ModelQuery) => listModels(deps, tenantId, query),
    /** See `ignoredBy`. */
    ignoredBy: (tenantId: string, request: ChatRequest) => ignoredBy(deps, tenantId, request),
    /** See `countPrompt`. @throws AppError `unknown_model`. */
    countTokens: (tenantId: string, request: ChatRequest) => countPrompt(deps, tenantId, request),
    /** Requests of the Messages API that are forwarded unchanged to their provider. */
    forwarding: makeForwardedChats(deps),
    /** The model of an id or alias, if the tenant may call it. */
    async findModel(tenantId: string, idOrAlias: string) {
      const model = await findModel(deps, tenantId, idOrAlias);
      return model && toModelEntry(model);
    },
    /** @throws AppError `unknown_model`, `invalid_request` for fallbacks that cannot be. */
    checkFallbacks: (tenantId: string, wanted: readonly ModelFallbacks[]) => checkFallbacks(deps, tenantId, wanted),
    /** Ids of the chat models that a tenant's calls can use right now; see `usableModels`. */
    usableModels: (tenantId: string) => usableModels(deps, tenantId),
    /** See `resolveModel`. @throws AppError `unknown_model`, `provider_not_configured`. */
    resolveModel: (tenantId: string, name: string, task?: string) => resolveModel(deps, tenantId, name, task),
    /** The log record of a call, even if it is not written yet. Throws `not_found`. */
    async log(tenantId: string, logId: string) {
      const pending = ledger.pending(logId);
      const document = pending?.tenantId === tenantId ? pending : await store.completions.get(tenantId, logId);
      if (document === null) throw notFound("log record");
      return callTexts.hideOld(document);
    },
    /** Log records without texts, the newest first. */
    logs: store.completions.list,
    /** How many breakers are open in this process, by provider. */
    openBreakers: breakers.countOpen,
    ...makeUsageReports(store),
    /** See `findWriter`. @throws AppError `unknown_model`, `provider_not_configured`. */
    findWriter: (tenantId: string, name?: string) => findWriter(deps, tenantId, name),
    /** What a tenant has left of its budget this month; null without a budget. */
    budget: budgets.view,
    /**
     * Rejects at submission what the budget would stop at its first call; each call checks it again.
     * @throws AppError `budget_exhausted` when nothing is left of the budget and one of the models costs something.
     */
    async requireBudget(tenantId: string, models: readonly string[], key?: Parameters<typeof budgets.view>[1]) {
      const found = await Promise.all(models.map((id) => findModel(deps, tenantId, id)));
      const isFree = (model: CataloguedModel | undefined) => model?.price.output === 0; // `auto` may choose a model that costs nothing
      if (!found.every(isFree)) requireLeft(await budgets.view(tenantId, key));
    },
    /** Sets a tenant's budget a month, in USD; null for none. */
    setBudget: budgets.set,
    /** Sets the limit that a tenant gives itself, in the same way; the lower of the two holds. */
    setOwnBudget: budgets.setOwn,
    /** What runs have left for all that they start. */
    runBudgets,
    /** Resolves when the records of all calls that ended are written. */
    flush: async () => void (await Promise.all([ledger.flush(), budgets.flush(), runBudgets.flush()])),
    close: async () => {
      await Promise.all([stop(), ledger.close(), budgets.flush(), runBudgets.flush()]);
      await Promise.all([...providers.values()].map((provider) => provider.close?.()));
    },
  };
}

/** The catalogue, which follows the models of the edge server until `stop`. */
async function openCatalogue(edge: EdgeSettings, logger: Logger) {
  const catalogue = makeCatalogue(edge);
  const { listed, stop } = followServedModels({ edge, onListed: catalogue.serve, logger });
  await listed;
  return { catalogue, stop };
}

/** Streams that have said much and are under way in a process, and those of one tenant among them. */
const LARGE_STREAMS = { size: 64, perOwner: 16 };

const MAX_CHARACTERS = 64;
/** Maximum surfaces that a tenant may name in a day (UTC) in one process. Each is a row of usage for every model. */
const MAX_SURFACES = 100;
/** Tenants whose surfaces a process remembers. */
const MAX_TENANTS = 2_000;
const DAY_MS = 86_400_000;

/** The surfaces that tenants name for their calls, few enough to be rows of usage. */
function makeSurfaces() {
  const keep = makeFirstNames({ names: MAX_SURFACES, tenants: MAX_TENANTS, periodMs: DAY_MS });
  /** The surface under which a call with this text is counted; null if the text is no name. */
  return (tenantId: string, text: string): string | null => {
    const surface = toSurface(text);
    return surface === "" ? null : keep(tenantId, surface, Date.now());
  };
}

/** Any text as the name of a row of usage. */
function toSurface(text: string): string {
  return text
    .slice(0, 4 * MAX_CHARACTERS)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^\w.:/-]+/g, "-")
    .slice(0, MAX_CHARACTERS)
    .replace(/^-+|-+$/g, "");
}
