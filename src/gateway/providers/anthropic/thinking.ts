import type { CompletionRequest } from "../provider.ts";

/** Models that think by a budget of tokens ("Extended thinking" of Anthropic's documentation); later ones by `effort`. */
const budgeted = /^claude-(opus|sonnet|haiku)-4-5\b/;
/** The part of an answer's limit that such a model may think, and the least that the API takes, in tokens. */
const shares = { minimal: 0.1, low: 0.2, medium: 0.5, high: 0.8, xhigh: 0.95, max: 0.95 };
const LEAST_BUDGET = 1_024;

/**
 * What a request's effort is in Anthropic's terms ("Effort" and "Adaptive thinking" of its documentation); nothing where
 * there is none, so that the model thinks as it does by default. Thinking is refused beside a demanded tool call; `effort`
 * alone is not.
 */
export function toThinking(
  { model, effort, toolChoice }: CompletionRequest,
  maxTokens: number,
): { thinking?: Record<string, unknown>; effort?: string } {
  if (effort === undefined) return {};
  // Sonnet 5.5 has no other word for it; it keeps its notes between tool calls.
  if (effort === "none") return { thinking: { type: model === "claude-sonnet-5-5" ? "between_tools" : "disabled" } };
  const isDemanded = typeof toolChoice === "object" || toolChoice === "required";
  if (!budgeted.test(model)) {
    const level = { effort: effort === "minimal" ? "low" : effort };
    return isDemanded ? level : { thinking: { type: "adaptive" }, ...level };
  }
  const budget = Math.floor(maxTokens * shares[effort]);
  return isDemanded || budget < LEAST_BUDGET ? {} : { thinking: { type: "enabled", budget_tokens: budget } };
}
