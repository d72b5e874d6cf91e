import { type Behaviour, defaultPieces, defaultUsage } from "./behaviour.ts";

/** What the fake reads of a request, whichever it is; the rest is there for tests to look at. */
export type WireRequest = {
  [field: string]: unknown;
  model: string;
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
  input?: string | string[];
  encoding_format?: string;
  dimensions?: number;
};

const created = 1_790_000_000;

const usageOf = (behaviour: Behaviour) => {
  const usage = behaviour.usage === undefined ? defaultUsage : behaviour.usage;
  return usage === false ? undefined : { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens };
};

const finishOf = (behaviour: Behaviour) => behaviour.finishReason ?? (behaviour.toolCalls ? "tool_calls" : "stop");
const piecesOf = (behaviour: Behaviour) => behaviour.pieces ?? (behaviour.toolCalls ? [] : defaultPieces);

/** The body of a chat completion (API reference, "The chat completion object"). */
export function chatCompletion(body: WireRequest, behaviour: Behaviour): unknown {
  const content = piecesOf(behaviour).join("");
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
          content: content === "" ? null : content,
          refusal: null,
          ...(behaviour.reasoning === undefined ? {} : { reasoning_content: behaviour.reasoning }),
          ...(behaviour.toolCalls === undefined ? {} : { tool_calls: behaviour.toolCalls.map(toWireCall) }),
        },
        logprobs: null,
        finish_reason: finishOf(behaviour),
      },
    ],
    ...(usageOf(behaviour) === undefined ? {} : { usage: usageOf(behaviour) }),
    system_fingerprint: "fp_fake",
  };
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
export function chatChunks(body: WireRequest, behaviour: Behaviour): string[] {
  const isUsageAsked = body.stream_options?.include_usage === true && usageOf(behaviour) !== undefined;
  const chunk = (delta: unknown, finishReason: string | null = null) => ({
    id: "chatcmpl-fake",
    object: "chat.completion.chunk",
    created,
    model: body.model,
    system_fingerprint: "fp_fake",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
    ...(isUsageAsked ? { usage: null } : {}),
  });
  const chunks: unknown[] = [chunk({ role: "assistant", content: "", refusal: null })];
  if (behaviour.reasoning !== undefined) chunks.push(chunk({ reasoning_content: behaviour.reasoning }));
  for (const piece of piecesOf(behaviour)) chunks.push(chunk({ content: piece }));
  (behaviour.toolCalls ?? []).forEach((call, index) => {
    chunks.push(chunk({ tool_calls: [{ index, ...toWireCall({ ...call, arguments: "" }) }] }));
    for (const part of halves(call.arguments))
      chunks.push(chunk({ tool_calls: [{ index, function: { arguments: part } }] }));
  });
  chunks.push(chunk({}, finishOf(behaviour)));
  if (isUsageAsked) chunks.push({ ...chunk({}), choices: [], usage: usageOf(behaviour) });
  return chunks.map((value) => JSON.stringify(value));
}

function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((part) => part.length > 0);
}

/** The list of embeddings; each vector tells its input's length and place, so that a swap is seen. */
export function embeddingList(body: WireRequest, behaviour: Behaviour): unknown {
  const inputs = [body.input ?? []].flat();
  const vectors = inputs.map((text, n) =>
    Float32Array.from({ length: body.dimensions ?? 4 }, (_, i) => [text.length, n, 0.5, -1][i] ?? 0),
  );
  const isBase64 = body.encoding_format === "base64" && behaviour.onlyFloats !== true;
  const tokens = inputs.reduce((sum, text) => sum + text.split(/\s+/).length, 0);
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

export function errorBody(behaviour: Behaviour): unknown {
  const message = behaviour.errorMessage ?? "The fake provider was told to fail.";
  return { error: { message, type: "fake_error", param: null, code: behaviour.errorCode ?? null } };
}
