import type { Timings } from "../money/account.ts";
import type { FinishReason, ToolCall, Usage } from "../providers/provider.ts";
import type { SkippedModel } from "./route-model.ts";

export type RoutingView = {
  requested: string;
  model: string;
  provider: string;
  reason: string;
  skipped?: SkippedModel[];
};

/** A finished chat completion, with what it cost. */
export type ChatOutcome = {
  logId: string;
  text: string;
  reasoning?: string;
  toolCalls: ToolCall[];
  finishReason: FinishReason;
  /** The catalogued model that answered. */
  model: string;
  provider: string;
  usage: Usage;
  cached: boolean;
  costUsd: number;
  routing: RoutingView;
  timingsMs: Timings;
  /** What compression did to the prompt, where it was asked for. */
  compression?: CompressionReport;
  /** How the cache served it, where it was asked. */
  cache?: CacheStatus;
};

/** `shared` came from an identical call that was under way. */
export type CacheStatus = "miss" | "hit" | "shared";

/** What compression did to a prompt, for `_preprocessing.compression`. Tokens are estimates. */
export type CompressionReport = {
  originalTokens: number;
  compressedTokens: number;
  /** Compressed by original. */
  ratio: number;
  techniques: string[];
};

/** A response that may be given again. */
export type CachedResponse = Pick<
  ChatOutcome,
  "text" | "reasoning" | "toolCalls" | "finishReason" | "model" | "provider" | "usage"
>;
