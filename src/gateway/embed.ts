import { defined, withoutNulls } from "../lib/defined.ts";
import { AppError, invalidRequest, renameField } from "../lib/errors.ts";
import { guardFor, takeBy } from "../tenancy/guard-policies.ts";
import { findModel, requireModel } from "./catalogue.ts";
import type { GatewayDeps } from "./deps.ts";
import type { EmbeddingsBody } from "./embeddings-schemas.ts";
import { text } from "./message-schemas.ts";
import type { GatewayCaller } from "./money/account.ts";
import { notingBlocked } from "./money/note-blocked.ts";
import { boundEmbedding } from "./money/prices.ts";
import type { CallContext, EmbeddingResult } from "./providers/provider.ts";
import { askModel, withFallbacks } from "./resilience/retry.ts";
import { findKeys, isUsable, notConfigured, type Target } from "./resilience/target.ts";
import { estimateTokens } from "./tokens.ts";

/** `isGuarded`: its texts were guarded before, as those of documents are. */
export type EmbedRequest = { input: string[]; model?: string; dimensions?: number; isGuarded?: boolean };

/** The request that a body of `POST /ai/embeddings` makes. */
export async function toEmbedRequest(body: EmbeddingsBody): Promise<EmbedRequest> {
  const { input, model, dimensions } = withoutNulls(body);
  return defined({ input: await toTexts(input), model, dimensions });
}

/** Limit of all inputs together, as at OpenAI. */
const MAX_TOKENS = 300_000;

/** The text of tokens; undefined if one of them has no text. */
function tryDecode(decode: (tokens: number[]) => string, tokens: number[]): string | undefined {
  try {
    return decode(tokens);
  } catch {
    return undefined; // a number without a token in this encoding
  }
}

/**
 * The texts of an input. Tokens become text, which any model can embed.
 * @throws AppError `invalid_request` for tokens without a text.
 */
async function toTexts(input: EmbeddingsBody["input"]): Promise<string[]> {
  if (typeof input === "string") return [input];
  const each = typeof input[0] === "number" ? [input] : input;
  if (each.every((one) => typeof one === "string")) return each;
  // The tables take 80 MB, so they are loaded at the first request with tokens.
  const { decode } = await import("gpt-tokenizer/encoding/cl100k_base");
  const lists = each as number[][]; // the schema has one kind in a list
  const total = lists.reduce((sum, { length }) => sum + length, 0);
  if (total > MAX_TOKENS) throw invalidRequest("input", `input has more than ${MAX_TOKENS} tokens.`);
  return lists.map((tokens, place) => {
    const said = text.min(1).safeParse(tryDecode(decode, tokens));
    if (said.success) return said.data;
    throw invalidRequest("input", `input[${place}] has tokens of no text, or of one that is too long.`);
  });
}

export type EmbedOutcome = {
  /** One for each input, in order. */
  embeddings: Float32Array[];
  model: string;
  inputTokens: number;
  costUsd: number;
  logId: string;
};

/** Embeddings as OpenAI lists them; base64 is of little-endian float32. */
export function toEmbeddingList(outcome: EmbedOutcome, format: EmbeddingsBody["encoding_format"]) {
  const { embeddings, model, inputTokens } = outcome;
  const toWire = (vector: Float32Array) =>
    format === "base64"
      ? Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("base64")
      : Array.from(vector);
  return {
    object: "list" as const,
    data: embeddings.map((vector, index) => ({ object: "embedding" as const, index, embedding: toWire(vector) })),
    model,
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
  };
}

/** Embedding, bound to its dependencies. */
export function makeEmbeddings(deps: GatewayDeps) {
  const { catalogue } = deps;
  return {
    /** See `embed`. */
    embed: (caller: GatewayCaller, request: EmbedRequest) => embed(deps, caller, request),
    /** See `checkModel`. @throws AppError `unknown_model`, `provider_not_configured`. */
    checkEmbeddingModel: (tenantId: string, name: string, param: string) => checkModel(deps, tenantId, { name, param }),
    /** Whether an embedding model of the catalogue knows meanings, not only words; undefined for none of it. */
    isSemantic(name: string): boolean | undefined {
      const model = catalogue.find(name);
      return model?.type === "embedding" ? model.isStub !== true : undefined;
    },
    /** The embedding model that is used when none is named. */
    defaultEmbeddingModel: catalogue.defaultEmbedding.id,
  };
}

/** Embeds texts; without a model by the platform's own. @throws AppError as `complete` does. */
export async function embed(deps: GatewayDeps, given: GatewayCaller, asked: EmbedRequest): Promise<EmbedOutcome> {
  const { isGuarded = false, ...whole } = asked;
  const { tenantId } = given;
  const model =
    whole.model === undefined
      ? deps.catalogue.defaultEmbedding
      : requireModel(await findModel(deps, tenantId, whole.model), whole.model, "embedding");
  const keys = await findKeys(deps, tenantId, { providers: [model.provider], required: model.provider });
  const routing = { requested: whole.model ?? model.id, model, reason: "named", fallbacks: [] };
  const plan = { routing, keys, tenantId };
  const guard = isGuarded ? undefined : await guardFor(deps, given);
  const caller = guard ? { ...given, guard } : given;
  const about = { kind: "embedding", isStreamed: false, findRouting: async () => routing } as const;
  const { input } =
    guard === undefined
      ? whole
      : await notingBlocked(deps, caller, about, () => takeBy(guard, "input", { input: whole.input }));
  const request = { ...whole, input };
  const inputTokens = () => request.input.reduce((sum, text) => sum + estimateTokens(text), 0);
  return withFallbacks(deps, plan, async (share) => {
    const asked = {
      caller,
      kind: "embedding" as const,
      isStreamed: false,
      inputTokens,
      toBounds: () => boundEmbedding(model, request.input),
      facts: { dimensions: request.dimensions },
      describe: (answer: EmbeddingResult) => answer,
    };
    const { call, result } = await askModel(deps, share, asked, () => toEmbedder(share.target, request));
    const usage = result.usage && { inputTokens: result.usage.inputTokens, outputTokens: 0 };
    // An embedding has no output, so a usage without output tokens need not be replaced by a count.
    const estimate = () => ({ inputTokens: usage?.inputTokens || inputTokens(), outputTokens: 0 });
    const settlement = call.settle({ usage, estimate });
    return {
      embeddings: result.embeddings,
      model: model.id,
      inputTokens: settlement.usage.inputTokens,
      costUsd: settlement.costUsd,
      logId: call.logId,
    };
  });
}

/**
 * The id of the embedding model that a name stands for, if the tenant can call it now.
 * @throws AppError `unknown_model` for none, and for one that does not embed; `provider_not_configured`. They name `param`.
 */
async function checkModel(
  deps: GatewayDeps,
  tenantId: string,
  { name, param }: { name: string; param: string },
): Promise<string> {
  const model = requireModel(await findModel(deps, tenantId, name), name, "embedding", param);
  const keys = await findKeys(deps, tenantId, { providers: [model.provider], required: model.provider });
  if (!isUsable(keys, model)) throw renameField(notConfigured(model), () => param);
  return model.id;
}

/** The provider's call. @throws AppError `unknown_model` when the provider has no embeddings. */
function toEmbedder({ model, provider }: Target, request: EmbedRequest) {
  const { embed: embedTexts } = provider;
  if (embedTexts === undefined) {
    throw new AppError("unknown_model", `${model.provider} has no embeddings.`, { param: "model" });
  }
  const wireRequest = { ...request, model: model.wireId ?? model.id };
  return (context: CallContext) => embedTexts(wireRequest, context);
}
