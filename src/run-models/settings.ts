import type { ChatRequest } from "../gateway/chat/request.ts";
import { settingFields } from "../gateway/providers/model.ts";
import { invalidRequest } from "../lib/errors.ts";
import { toConversation } from "./conversation.ts";

/** Most names that a response lists of what is left out. */
const MAX_IGNORED = 20;

/** Settings of a chat that a run has of its own, and their names in a request. */
const settings = {
  ...settingFields,
  temperature: "temperature",
  topP: "top_p",
  maxTokens: "max_tokens",
  tools: "tools",
  toolChoice: "tool_choice",
  responseFormat: "response_format",
  stop: "stop",
  effort: "reasoning_effort",
  reasoningSummary: "reasoning.summary",
} as const satisfies Partial<Record<keyof ChatRequest, string>>;
const names = Object.entries(settings) as [keyof typeof settings, string][]; // the literal has no other keys

/** What of a chat its run does not use: an agent and a pattern have settings and tools of their own. */
export function ignoredByRun(request: ChatRequest): string[] {
  const ignored = names.flatMap(([setting, name]) => (request[setting] === undefined ? [] : [name]));
  const { compress, cache, cacheTtlSeconds } = request.options ?? {};
  if (compress || cache || cacheTtlSeconds !== undefined) ignored.push("x-svc-options");
  return [...ignored, ...toConversation(request).ignored].slice(0, MAX_IGNORED);
}

/** @throws AppError `invalid_request` where a caller wants no setting to be left out. */
export function requireStrict(request: ChatRequest): void {
  if (request.options?.strict !== true) return;
  const [first] = ignoredByRun(request);
  if (first !== undefined) throw invalidRequest(first, `${request.model.slice(0, 100)} takes no ${first}.`);
}
