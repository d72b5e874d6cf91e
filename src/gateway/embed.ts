import { AppError } from "../errors.ts";
import { beginCall, type GatewayCaller } from "./account.ts";
import { findModel } from "./catalogue.ts";
import { estimateTokens } from "./count-tokens.ts";
import { type GatewayDeps, guarded, isUsable, providerOf, toContext } from "./deps.ts";
import { withRetries } from "./retry.ts";
import { requireUsable } from "./route-model.ts";

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
  const model =
    request.model === undefined
      ? deps.catalogue.defaultEmbedding
      : findModel(deps.catalogue, request.model, "embedding");
  requireUsable(model, isUsable(deps));
  const { provider, breaker } = providerOf(deps, model);
  const { embed: embedTexts } = provider;
  if (embedTexts === undefined) {
    throw new AppError("unknown_model", `${model.provider} has no embeddings.`, { param: "model" });
  }
  const routing = { requested: request.model ?? model.id, model, reason: "named" };
  const call = beginCall(deps.ledger, caller, { kind: "embedding", routing, isStreamed: false });
  const wireRequest = {
    model: model.id,
    input: request.input,
    ...(request.dimensions === undefined ? {} : { dimensions: request.dimensions }),
  };
  const estimate = () => ({
    inputTokens: request.input.reduce((sum, text) => sum + estimateTokens(text), 0),
    outputTokens: 0,
  });
  try {
    const result = await withRetries(() => guarded(breaker, () => embedTexts(wireRequest, toContext(caller.signal))), {
      signal: caller.signal,
      onTry: call.onTry,
    });
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
    const isCharged = caller.signal.aborted && call.wasTried();
    call.settle({
      usage: undefined,
      estimate: isCharged ? estimate : () => ({ inputTokens: 0, outputTokens: 0 }),
      error,
    });
    throw error;
  }
}
