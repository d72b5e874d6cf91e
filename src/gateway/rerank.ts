import { AppError } from "../lib/errors.ts";
import { guardFor, takeBy } from "../tenancy/guard-policies.ts";
import { findModel, requireModel } from "./catalogue.ts";
import type { GatewayDeps } from "./deps.ts";
import type { GatewayCaller } from "./money/account.ts";
import { notingBlocked } from "./money/note-blocked.ts";
import { boundEmbedding } from "./money/prices.ts";
import { chats } from "./providers/model.ts";
import type { CallContext, RerankRequest, RerankResult } from "./providers/provider.ts";
import { askModel, withFallbacks } from "./resilience/retry.ts";
import { findKeys, type Target } from "./resilience/target.ts";
import { estimateTokens } from "./tokens.ts";

/** The scores of a request's documents, in their order; those that the model left out have none. */
type RerankOutcome = { scores: readonly (number | undefined)[]; costUsd: number };

/** A model that can judge passages: one for that alone, or one that chats. */
export type Judge = { id: string; isReranker: boolean };

/** Reranking, bound to its dependencies. */
export function makeReranking(deps: GatewayDeps) {
  return {
    /** See `rerank`. */
    rerank: (caller: GatewayCaller, request: RerankRequest) => rerank(deps, caller, request),
    /** See `findJudge`. */
    findJudge: (tenantId: string, name?: string) => findJudge(deps, tenantId, name),
  };
}

/** Scores documents by a reranking model. @throws AppError as `embed` does. */
async function rerank(deps: GatewayDeps, given: GatewayCaller, asked: RerankRequest): Promise<RerankOutcome> {
  const { tenantId } = given;
  const model = requireModel(await findModel(deps, tenantId, asked.model), asked.model, "rerank");
  const keys = await findKeys(deps, tenantId, { providers: [model.provider], required: model.provider });
  const routing = { requested: asked.model, model, reason: "named", fallbacks: [] };
  const guard = await guardFor(deps, given);
  const caller = guard ? { ...given, guard } : given;
  const about = { kind: "rerank", isStreamed: false, findRouting: async () => routing } as const;
  const { query, documents } =
    guard === undefined ? asked : await notingBlocked(deps, caller, about, () => takeBy(guard, "input", asked));
  const request = { ...asked, query, documents };
  const texts = [request.query, ...request.documents];
  const inputTokens = () => texts.reduce((sum, text) => sum + estimateTokens(text), 0);
  return withFallbacks(deps, { routing, keys, tenantId: caller.tenantId }, async (share) => {
    const about = { caller, kind: "rerank" as const, isStreamed: false, inputTokens };
    // A reranker reads the query once for each document, and some count it so.
    const pairs = request.documents.map((document) => `${request.query}\n${document}`);
    const asked = {
      ...about,
      toBounds: () => boundEmbedding(model, pairs),
      describe: (answer: RerankResult) => answer,
    };
    const { call, result } = await askModel(deps, share, asked, () => toReranker(share.target, request));
    const usage = result.usage && { inputTokens: result.usage.inputTokens, outputTokens: 0 };
    const estimate = () => ({ inputTokens: inputTokens(), outputTokens: 0 });
    return { scores: result.scores, costUsd: call.settle({ usage, estimate }).costUsd };
  });
}

/** The provider's call. @throws AppError `unknown_model` when the provider has no reranking. */
function toReranker({ model, provider }: Target, request: RerankRequest) {
  const { rerank: score } = provider;
  if (score === undefined) {
    throw new AppError("unknown_model", `${model.provider} has no reranking.`, { param: "model" });
  }
  const wireRequest = { ...request, model: model.wireId ?? model.id };
  return (context: CallContext) => score(wireRequest, context);
}

/**
 * The model that judges passages: the one of a name, else the tenant's first reranking model, else the platform's default chat
 * model, unless that is only a stub. Undefined where there is none.
 * @throws AppError `unknown_model`, `provider_not_configured` for the name.
 */
async function findJudge(deps: GatewayDeps, tenantId: string, name?: string): Promise<Judge | undefined> {
  if (name === undefined) {
    const own = [...(await deps.customProviders.models(tenantId)).values()].filter(({ type }) => type === "rerank");
    const [first] = own.map(({ id }) => id).sort();
    if (first !== undefined) return { id: first, isReranker: true };
    const { id, isStub } = deps.catalogue.defaultChat;
    return isStub ? undefined : { id, isReranker: false };
  }
  const found = await findModel(deps, tenantId, name);
  const model = requireModel(found, name, found && chats(found) ? "chat" : "rerank", "rerank.model");
  await findKeys(deps, tenantId, { providers: [model.provider], required: model.provider });
  return { id: model.id, isReranker: model.type === "rerank" };
}
