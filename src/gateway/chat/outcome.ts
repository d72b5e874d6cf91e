import type { PlacedCitation } from "../citation.ts";
import type { AssistantPart } from "../messages.ts";
import type { CompletionResult, Usage } from "../providers/provider.ts";
import type { Preprocessing } from "../schemas.ts";

export type RoutingView = Preprocessing["routing"];
/** What compression did to a prompt. */
export type CompressionReport = NonNullable<Preprocessing["compression"]>;

/** A finished chat completion, with what it cost. Its `model` is the catalogued one that answered. */
export type ChatOutcome = Omit<CompletionResult, "parts"> & {
  /** The whole turn, if it has reasoning that must be sent back. */
  parts?: readonly AssistantPart[];
  logId: string;
  provider: string;
  usage: Usage;
  /** What the answer rests on; only of a run that has searched documents. */
  citations?: readonly PlacedCitation[];
  cached: boolean;
  costUsd: number;
  routing: RoutingView;
  timingsMs: Preprocessing["timingsMs"];
  /** Only where compression was asked for. */
  compression?: CompressionReport;
  /** What the cache did, if it was asked. `shared`: the answer came from an identical call under way. */
  cache?: Preprocessing["cache"]["status"];
};

/** A response that may be served again. */
export type CachedResponse = Pick<
  ChatOutcome,
  "text" | "reasoning" | "toolCalls" | "parts" | "finishReason" | "model" | "provider" | "usage" | "logprobs"
>;
