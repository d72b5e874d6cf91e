import type { AppError } from "../../lib/errors.ts";
import type { Logprob } from "../logprobs.ts";
import type { Message, ProvidedPart, ToolCall } from "../messages.ts";
import type { Connection } from "../resilience/transport.ts";
import type { Effort, ProviderModel } from "./model.ts";

export type ToolDefinition = { name: string; description?: string; parameters?: Record<string, unknown> };
export type ToolChoice = "auto" | "none" | "required" | { name: string };
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";
export type Usage = {
  /** All tokens of the prompt, whatever was cached of it. */
  inputTokens: number;
  outputTokens: number;
  /** Those of `inputTokens` that the provider read from its own prompt cache, or wrote to it: they have other prices. */
  cachedTokens?: number;
  cacheWriteTokens?: number;
  /** Those of `cacheWriteTokens` that are kept for an hour, which costs more. */
  hourWriteTokens?: number;
  /** Those of `outputTokens` that were thought, where the provider counts them apart. */
  reasoningTokens?: number;
  /** It was served at the tier `flex`, at half the price. */
  isFlex?: true;
};

/** OpenAI's `service_tier`. Of those with a price of their own models take `flex` alone. */
export const serviceTiers = ["auto", "default", "flex", "scale", "priority"] as const;
export type ServiceTier = (typeof serviceTiers)[number];

/** OpenAI's `response_format`, but for texts, which every model writes. */
export type ResponseFormat =
  | { type: "json_object" }
  | {
      type: "json_schema";
      json_schema: {
        name: string;
        schema: Record<string, unknown>;
        strict?: boolean | null | undefined;
        description?: string | null | undefined;
      };
    };

/** Further wishes for an answer, as OpenAI's API has them; a provider sends on those that its wire format knows. */
export type Sampling = {
  topP?: number;
  stop?: string[];
  seed?: number;
  /** A model that cannot keep to it is refused before. */
  responseFormat?: ResponseFormat;
  /** `none` switches the reasoning of a model off. */
  effort?: Effort;
  /** What OpenAI's Responses API is to show of the reasoning; others show what they show. */
  reasoningSummary?: "auto" | "concise" | "detailed";
  verbosity?: "low" | "medium" | "high";
  /** Whether the model may call several tools at once. */
  parallelToolCalls?: boolean;
  /** The caller's own notes on the call, which the provider keeps with it. */
  metadata?: Record<string, string>;
  /** The caller's user, whom the provider is to recognize: by OpenAI's earlier name, and by the one that replaces it. */
  user?: string;
  safetyIdentifier?: string;
  serviceTier?: ServiceTier;
  /** Calls that begin alike and have the same key find each other's prompt in the provider's cache. */
  promptCacheKey?: string;
  presencePenalty?: number;
  frequencyPenalty?: number;
  /** Tokens, by their numbers, that are to come more or less often. */
  logitBias?: Record<string, number>;
  /** What much of the answer will be, so that it comes sooner. */
  prediction?: Record<string, unknown>;
  /** Whether each token of the answer comes with its probability, and with those of how many others. */
  logprobs?: true;
  topLogprobs?: number;
};

/** A chat completion as the gateway asks a provider for it: the model is the provider's own name for it. */
export type CompletionRequest = {
  model: string;
  messages: Message[];
  temperature?: number;
  maxTokens?: number;
  tools?: ToolDefinition[];
  toolChoice?: ToolChoice;
  /** Beside the choice `auto` or `required`: the only ones of the tools that may be called. */
  allowedTools?: string[];
  /** The model can reason, so that its reasoning may be asked for. */
  canReason?: true;
} & Sampling;

export type CompletionResult = {
  text: string;
  reasoning?: string;
  toolCalls: ToolCall[];
  /** The whole turn in its order, where it has reasoning that is to come back; the gateway names its provider. */
  parts?: readonly ProvidedPart[];
  finishReason: FinishReason;
  /** The provider's own word for how it ended, where that is one that we do not know. */
  providerFinishReason?: string;
  /** The provider's own count; when it reported none, the gateway estimates. */
  usage?: Usage;
  responseId?: string;
  model: string;
  /** How likely its tokens were, if that was asked for. */
  logprobs?: Logprob[];
};

/** What a provider calls an answer, and the model that it says to have made it with. */
export type AnswerNames = { responseId?: string; model?: string };

/** One part of a streamed completion. A complete stream ends with exactly one `end`. */
export type StreamPart =
  | { type: "text-delta"; text: string; logprobs?: Logprob[] }
  | { type: "reasoning-delta"; text: string }
  /** Reasoning that is to come back, whole, in its place among the other parts of the turn. */
  | { type: "reasoning-item"; item: Record<string, unknown> }
  | { type: "tool-call-delta"; index: number; id?: string; name?: string; argumentsDelta: string }
  /** The provider's count of the prompt, ahead of the whole usage: what a stream that breaks off is charged with. */
  | { type: "prompt-usage"; usage: Usage }
  | { type: "usage"; usage: Usage }
  | ({ type: "end"; finishReason: FinishReason; providerFinishReason?: string } & AnswerNames);

export type EmbeddingRequest = { model: string; input: string[]; dimensions?: number };
export type EmbeddingResult = { embeddings: Float32Array[]; usage?: { inputTokens: number }; model: string };

export type RerankRequest = { model: string; query: string; documents: readonly string[] };
/** A score for each document, the higher the more relevant; a server may leave some out. */
export type RerankResult = { scores: (number | undefined)[]; usage?: { inputTokens: number }; model: string };

/** The visible part of a provider's work for a failed call; missing fields are not known. */
export type Served = { usage?: Usage; promptUsage?: Usage; text?: string };

/** What a result that was read from a broken answer shows of the work. */
export function toServed({ text, reasoning = "", toolCalls, usage }: CompletionResult): Served {
  if (usage !== undefined) return { usage };
  return { text: [reasoning, text, ...toolCalls.flatMap((call) => [call.name, call.arguments])].join("") };
}

/** Most bytes of a whole answer of a custom provider. */
export const MAX_ANSWER_BYTES = 4 << 20;

/** What a call carries besides its request: the key that it is made with. Aborting `signal` aborts the upstream request. */
export type CallContext = {
  signal: AbortSignal;
  apiKey?: string;
  /** Above this a whole answer is refused, in bytes. */
  maxAnswerBytes?: number;
  /**
   * Called at most once when a failed call is still billable: aborted while pending, or cut mid-response. The prompt and what
   * was sent are charged. Not called once a stream has yielded a part.
   */
  onCharged?(served: Served): void;
};

/** The headers that carry a key, and others that the API wants. */
export type ToHeaders = (apiKey: string | undefined) => Record<string, string>;

/**
 * One chat of a batch; `customId` comes back with its answer. `raw`, in the provider's own wire format, goes in the place of
 * `request`; those of one batch have the same path and headers.
 */
export type BatchItem = { customId: string; request: CompletionRequest; raw?: RawRequest };
/** What became of an item; `raw` is the answer as it came. One without a result counts as expired. */
export type BatchItemResult = { customId: string } & (
  | { result: CompletionResult; raw?: unknown }
  | { error: AppError }
  | { isExpired: true }
);

/** A provider's interface for many chats at half the price, answered within a day. */
export type ProviderBatches = {
  /** Tells chats apart that cannot share a batch, although their model and key are the same; absent when all can. */
  kindOf?(request: CompletionRequest): string;
  /** Submits a batch under our id; the provider's id of it. */
  submit(batchId: string, items: readonly BatchItem[], context: CallContext): Promise<string>;
  /**
   * The provider's id of a batch that may have been submitted under our id, by a process that died before it recorded that.
   * `isKnown` gives those of the provider's ids that belong to other batches of ours.
   */
  find(
    sought: { batchId: string; size: number; since: Date; isKnown(ids: string[]): Promise<Set<string>> },
    context: CallContext,
  ): Promise<string | undefined>;
  hasEnded(id: string, context: CallContext): Promise<boolean>;
  /** The items of a batch that has ended. */
  results(id: string, context: CallContext): AsyncIterable<BatchItemResult>;
};

/** A request in a provider's own wire format, which goes to it as it came. `headers` go with the provider's own. */
export type RawRequest = { path: string; body: string; headers: Record<string, string> };
/** What is read of a raw answer, to account for it. */
export type RawAnswer = { body: string; text: string; finishReason?: FinishReason; usage?: Usage } & AnswerNames;
/** Whole events of a raw stream, and what they report. `failure` is an error that they report to the reader themselves. */
export type RawEvents = { bytes: Buffer; parts: StreamPart[]; failure?: unknown };

/** Sends on requests in a provider's own wire format, and gives back answers byte for byte; both throw as `Provider` does. */
export type Forwarding = {
  send(request: RawRequest, context: CallContext): Promise<RawAnswer>;
  stream(request: RawRequest, context: CallContext): AsyncIterable<RawEvents>;
};

/**
 * The seam between the gateway and the servers of models. A provider maps requests, answers, streams and errors of one
 * wire format; it neither retries, nor routes, nor accounts. It throws AppErrors (`provider_failed`,
 * `provider_key_refused`, `provider_rate_limited`, `provider_timeout`), `retryable` saying whether the same call may succeed later.
 */
export type Provider = {
  complete(request: CompletionRequest, context: CallContext): Promise<CompletionResult>;
  /** Yields the parts of one network chunk at a time, so that a host can write once a chunk. */
  stream(request: CompletionRequest, context: CallContext): AsyncIterable<StreamPart[]>;
  embed?(request: EmbeddingRequest, context: CallContext): Promise<EmbeddingResult>;
  rerank?(request: RerankRequest, context: CallContext): Promise<RerankResult>;
  /** For requests of `/v1/messages`, where that is its own wire format; absent: they are translated. */
  forward?: Forwarding;
  /** `own-workers`: it has no batch interface, and our workers run its batches, a call an item. Absent: no batches. */
  batches?: ProviderBatches | "own-workers";
  /** Frees its connections; calls under way fail. */
  close?(): Promise<void>;
};

/** A provider that takes customers' keys. Its id and its settings are in src/config/provider-settings.ts. */
export type KeyedProvider = {
  models: readonly ProviderModel[];
  keys: {
    /** How its keys begin, and the words for a key that does not. */
    fits: RegExp;
    form: string;
    /** A GET that costs nothing and that is refused with 401 or 403 for a bad key; absent when it has none. */
    toCheck?(apiKey: string): { path: string; headers: Record<string, string> };
  };
  open(connection: Connection): Provider;
};
