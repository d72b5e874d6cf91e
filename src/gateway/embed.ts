import { AppError } from "../errors.ts";
import { findModel } from "./catalogue.ts";
import { estimateTokens } from "./count-tokens.ts";
import type { GatewayDeps } from "./deps.ts";
import { type GatewayCaller, openCall } from "./money/account.ts";
import { boundEmbedding } from "./money/prices.ts";
import type { CallContext } from "./providers/provider.ts";
import { withFallbacks } from "./resilience/fallback.ts";
import { withRetries } from "./resilience/retry.ts";
import { findKeys, type Target, tryTarget } from "./resilience/target.ts";

export type EmbedRequest = { input: string[]; model?: string; dimensions?: number };
export type EmbedOutcome = {
  /** One for each input, in order. */
  embeddings: Float32Array[];
  model: string;
  inputTokens: number;
  costUsd: number;
  logId: string;
};

/**
 * Embeds texts; without a model by the platform's own.
 * @throws AppError as `complete` does.
 */
export async function embed(deps: GatewayDeps, caller: GatewayCaller, request: EmbedRequest): Promise<EmbedOutcome> {
  const { catalogue } = deps;
  const model =
    request.model === undefined ? catalogue.defaultEmbedding : findModel(catalogue, request.model, "embedding");
  const keys = await findKeys(deps, caller.tenantId, { providers: [model.provider], required: model.provider });
  const routing = { requested: request.model ?? model.id, model, reason: "named", fallbacks: [] };
  const plan = { routing, keys, tenantId: caller.tenantId };
  return withFallbacks(deps, plan, async ({ target, maxAttempts, onAttempt }) => {
    const inputTokens = () => request.input.reduce((sum, text) => sum + estimateTokens(text), 0);
    const call = await openCall(deps, caller, {
      kind: "embedding",
      routing,
      isStreamed: false,
      inputTokens,
      toBounds: () => boundEmbedding(model, request.input),
    });
    const { signal } = caller;
    const tried = {
      signal,
      onAttempt: () => {
        onAttempt();
        call.onAttempt();
      },
      onCharged: call.onCharged,
    };
    const estimate = () => ({ inputTokens: inputTokens(), outputTokens: 0 });
    try {
      const embedTexts = toEmbedder(target, request);
      const result = await withRetries(() => tryTarget(target, tried, embedTexts), { signal, maxAttempts });
      const usage = result.usage === undefined ? undefined : { inputTokens: result.usage.inputTokens, outputTokens: 0 };
      const settlement = call.settle({ usage, estimate });
      return {
        embeddings: result.embeddings,
        model: model.id,
        inputTokens: settlement.usage.inputTokens,
        costUsd: settlement.costUsd,
        logId: call.logId,
      };
    } catch (error) {
      call.settle({ error });
      throw error;
    }
  });
}

/** The provider's call. @throws AppError `unknown_model` when the provider has no embeddings. */
function toEmbedder({ model, provider }: Target, request: EmbedRequest) {
  const { embed: embedTexts } = provider;
  if (embedTexts === undefined) {
    throw new AppError("unknown_model", `${model.provider} has no embeddings.`, { param: "model" });
  }
  const { dimensions } = request;
  const wireRequest = { model: model.id, input: request.input, ...(dimensions === undefined ? {} : { dimensions }) };
  return (context: CallContext) => embedTexts(wireRequest, context);
}
