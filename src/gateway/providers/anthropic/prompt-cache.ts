import type { CompletionRequest } from "../provider.ts";

/** Marks the end of what the API is to keep for five minutes ("Prompt caching" of Anthropic's documentation). */
export const BREAKPOINT = { cache_control: { type: "ephemeral" as const } };

/**
 * Whether the start of a request is likely to come again soon: that of a conversation, of a call with tools, whose
 * results come back after all that it has, or of one whose `promptCacheKey` says so. Writing to the cache costs a quarter more than not writing, and reading a tenth at most, so one repeat pays for it.
 * A prompt below the model's minimum (512 to 4,096 tokens) is neither kept nor charged more, so its length needs no look.
 */
export function willRepeat({ messages, promptCacheKey, tools, toolChoice }: CompletionRequest): boolean {
  const mayCall = tools !== undefined && toolChoice !== "none";
  return promptCacheKey !== undefined || mayCall || messages.some(({ role }) => role === "assistant");
}

/**
 * Marks the ends of the user's last two turns. The last one is what the next call reads; the one before is what the last call
 * wrote, and without a mark the API looks for it only 20 blocks back, which parallel tool calls exceed.
 */
export function markTurns(turns: readonly { role: "user" | "assistant"; content: object[] }[]): void {
  for (const { content } of turns.filter(({ role }) => role === "user").slice(-2)) markEnd(content);
}

export function markEnd(blocks: readonly object[]): void {
  const last = blocks.at(-1);
  if (last !== undefined) Object.assign(last, BREAKPOINT);
}
