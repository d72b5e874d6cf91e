import { type Behaviour, halves, piecesOf, usageOf } from "./behaviour.ts";
import { countUsage, inputTexts, textOf, type WireEvent, type WireFormat, type WireRequest } from "./wire-format.ts";

const created = 1_790_000_000;
/** OpenAI's models that reason: they take the token limit by its newer name, and a temperature only when they do not reason. */
export const isReasoningModel = (model: string) => /^(gpt-[5-9]|o\d)/.test(model);
/** Those that reason unless they are told not to: only then they call tools. */
export const isReasoningByDefault = (model: string) => /^gpt-(5\.[5-9]|[6-9])/.test(model);
/** Those that know no effort `none`. */
export const isAlwaysReasoning = (model: string) => /^gpt-6(-astra|\.1-sol)/.test(model);

/** `POST /v1/chat/completions` (API reference, "Chat"). */
export const chatFormat: WireFormat = {
  refuse: (body) => {
    const unsupported = (what: string, code: string): Behaviour => ({
      status: 400,
      errorCode: code,
      errorMessage: what,
    });
    if (!Array.isArray(body.messages))
      return unsupported("Missing required parameter: 'messages'.", "missing_parameter");
    if (!isReasoningModel(body.model)) return undefined;
    if (body.max_tokens !== undefined) {
      const hint = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
      return unsupported(hint, "unsupported_parameter");
    }
    if (body.reasoning_effort === "none" && !isAlwaysReasoning(body.model)) return undefined;
    if (body.tools !== undefined && (isReasoningByDefault(body.model) || body.reasoning_effort !== undefined))
      return unsupported("Function tools with reasoning_effort are not supported.", "unsupported_parameter");
    const isDefault = body.temperature === undefined || body.temperature === 1;
    return isDefault ? undefined : unsupported("Unsupported value: 'temperature'.", "unsupported_value");
  },
  toAnswer: toChatCompletion,
  toEvents: toChatChunks,
  closing: "data: [DONE]\n\n",
  toError,
  errorEvent: 'data: {"error":{"message":"overloaded","code":"overloaded"}}\n\n',
  malformedEvent: 'data: {"choices": [{"delta"\n\ndata: [DONE]\n\n',
};

/** `POST /v1/embeddings`; each vector tells its input's length and place, so that a swap is seen. */
export const embeddingsFormat: WireFormat = {
  ...chatFormat,
  refuse: () => undefined,
  toAnswer: toEmbeddingList,
  toEvents: () => [],
};

/** The tier that serves a request: the one that it asks for, where there is a choice. */
export const tierOf = (body: WireRequest) => (body.service_tier === "flex" ? "flex" : "default");

const wireUsageOf = (body: WireRequest, behaviour: Behaviour) => {
  const usage = usageOf(behaviour, () => countUsage(body, textOf(behaviour)));
  if (usage === undefined) return undefined;
  const { prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, reasoning_tokens } = usage;
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    ...(reasoning_tokens === undefined ? {} : { completion_tokens_details: { reasoning_tokens } }),
    ...(cached_tokens === undefined
      ? {}
      : { prompt_tokens_details: { cached_tokens, cache_write_tokens, audio_tokens: 0 } }),
  };
};

const finishOf = (behaviour: Behaviour) => behaviour.finishReason ?? (behaviour.toolCalls ? "tool_calls" : "stop");

/** The body of a chat completion (API reference, "The chat completion object"). */
function toChatCompletion(body: WireRequest, behaviour: Behaviour): unknown {
  const content = piecesOf(behaviour).join("");
  const usage = wireUsageOf(body, behaviour);
  const said = content === "" ? null : content;
  return {
    id: "chatcmpl-fake",
    object: "chat.completion",
    created,
    model: body.model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: behaviour.isRejection ? null : said,
          refusal: behaviour.isRejection ? said : null,
          ...(behaviour.reasoning === undefined ? {} : { reasoning_content: behaviour.reasoning }),
          ...(behaviour.toolCalls === undefined ? {} : { tool_calls: behaviour.toolCalls.map(toWireCall) }),
        },
        logprobs: marksOf(body, piecesOf(behaviour)),
        finish_reason: finishOf(behaviour),
      },
    ],
    ...(usage === undefined ? {} : { usage }),
    service_tier: tierOf(body),
    system_fingerprint: "fp_fake",
  };
}

/** The probabilities of an answer's pieces, if they were asked for. */
function marksOf({ logprobs, top_logprobs: others }: WireRequest, pieces: readonly string[]) {
  if (logprobs !== true || pieces.length === 0) return null;
  const mark = (token: string, logprob: number) => ({ token, logprob, bytes: [...Buffer.from(token)] });
  const instead = Array.from({ length: Number(others ?? 0) }, (_, n) => mark(`t${n}`, -n - 1));
  return { content: pieces.map((piece) => ({ ...mark(piece, -0.25), top_logprobs: instead })), refusal: null };
}

const toWireCall = ({ id, name, arguments: text }: { id: string; name: string; arguments: string }) => ({
  id,
  type: "function",
  function: { name, arguments: text },
});

/**
 * The events of a streamed completion: role first, then reasoning, the pieces, the tool calls split over deltas, the
 * finish reason, and with `include_usage` a chunk with the usage and no choices. `[DONE]` is not among them.
 */
function toChatChunks(body: WireRequest, behaviour: Behaviour): WireEvent[] {
  const usage = wireUsageOf(body, behaviour);
  const isUsageAsked = body.stream_options?.include_usage === true && usage !== undefined;
  const chunk = (delta: unknown, finishReason: string | null = null, pieces: string[] = []) => ({
    id: "chatcmpl-fake",
    object: "chat.completion.chunk",
    created,
    model: body.model,
    service_tier: tierOf(body),
    system_fingerprint: "fp_fake",
    choices: [{ index: 0, delta, logprobs: marksOf(body, pieces), finish_reason: finishReason }],
    ...(isUsageAsked ? { usage: null } : {}),
  });
  const events: WireEvent[] = [{ kind: "head", data: chunk({ role: "assistant", content: "", refusal: null }) }];
  const add = (delta: unknown, text = "") =>
    events.push({ kind: "piece", data: chunk(delta, null, Object(delta).content ? [text] : []), text });
  if (behaviour.reasoning !== undefined) add({ reasoning_content: behaviour.reasoning }, behaviour.reasoning);
  for (const piece of piecesOf(behaviour)) add(behaviour.isRejection ? { refusal: piece } : { content: piece }, piece);
  (behaviour.toolCalls ?? []).forEach((call, index) => {
    add({ tool_calls: [{ index, ...toWireCall({ ...call, arguments: "" }) }] }, call.name);
    for (const part of halves(call.arguments)) add({ tool_calls: [{ index, function: { arguments: part } }] }, part);
  });
  events.push({ kind: "tail", data: chunk({}, finishOf(behaviour)) });
  if (isUsageAsked) events.push({ kind: "tail", data: { ...chunk({}), choices: [], usage } });
  return events;
}

function toEmbeddingList(body: WireRequest, behaviour: Behaviour): unknown {
  const inputs = inputTexts(body);
  const vectors = inputs.map((text, n) =>
    Float32Array.from({ length: body.dimensions ?? 4 }, (_, i) => [text.length, n, 0.5, -1][i] ?? 0),
  );
  const isBase64 = body.encoding_format === "base64" && behaviour.onlyFloats !== true;
  const tokens = toEmbeddingUsage(body, behaviour).prompt_tokens;
  return {
    object: "list",
    data: vectors.map((vector, index) => ({
      object: "embedding",
      index,
      embedding: isBase64 ? Buffer.from(vector.buffer).toString("base64") : Array.from(vector),
    })),
    model: body.model,
    ...(behaviour.usage === false ? {} : { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
  };
}

/** Embeddings count words unless they are told otherwise. */
export function toEmbeddingUsage(body: WireRequest, behaviour: Behaviour) {
  const words = inputTexts(body).reduce((sum, text) => sum + text.split(/\s+/).length, 0);
  if (typeof behaviour.usage === "object")
    return { prompt_tokens: behaviour.usage.prompt_tokens, completion_tokens: 0 };
  const isEstimated = behaviour.usage === "counted" || behaviour.usage === false;
  return isEstimated ? countUsage(body, "") : { prompt_tokens: words, completion_tokens: 0 };
}

function toError(behaviour: Behaviour): unknown {
  const message = behaviour.errorMessage ?? "The fake provider was told to fail.";
  return { error: { message, type: "fake_error", param: null, code: behaviour.errorCode ?? null } };
}
