import type { ChatOutcome } from "../../gateway/chat/outcome.ts";
import { toDeltas } from "../../gateway/chat/streamed-response.ts";
import type { Usage } from "../../gateway/providers/provider.ts";
import { defined } from "../../lib/defined.ts";
import type { ErrorView } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import { secondsNow } from "../chat-completions/openai.ts";
import { searchResults } from "./file-search.ts";
import { makeResponseOutput, type OutputOptions, toTextItem } from "./output.ts";
import { sealedReasoning } from "./request.ts";
import type { ResponsesBody } from "./request-schemas.ts";
import type { OutputItem, ResponseObject } from "./response-schemas.ts";
import type { AnsweredResponse } from "./steps.ts";
import { makeFindTool } from "./tools.ts";

/** A response that has just begun: what was asked for, with OpenAI's defaults, and no output. */
export function beginResponse(body: ResponsesBody): ResponseObject {
  const { reasoning, text, tools, user } = body;
  return {
    id: newId("response"),
    object: "response",
    created_at: secondsNow(),
    completed_at: null,
    status: "in_progress",
    error: null,
    incomplete_details: null,
    model: body.model,
    output: [],
    usage: null,
    instructions: body.instructions ?? null,
    tools: (tools ?? []).flatMap((tool): object[] => {
      if (tool.type === "other") return [];
      if (tool.type !== "function") return [tool];
      const { type, name, description = null, parameters = null } = tool;
      return [{ type, name, description, parameters, strict: false }];
    }),
    tool_choice: toShownChoice(body.tool_choice),
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    text: { format: toShownFormat(text?.format), verbosity: text?.verbosity ?? "medium" },
    temperature: body.temperature ?? 1,
    top_p: body.top_p ?? 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    top_logprobs: 0,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: null,
    truncation: "disabled",
    metadata: body.metadata ?? {},
    service_tier: body.service_tier ?? "auto",
    safety_identifier: body.safety_identifier ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    ...(user ? { user } : {}),
    store: body.store !== false,
    background: body.background === true,
    previous_response_id: body.previous_response_id ?? null,
    conversation: body.conversation ? { id: body.conversation } : null,
  };
}

/** The format of the request, with what the API adds to it. */
function toShownFormat(format: NonNullable<ResponsesBody["text"]>["format"]): unknown {
  if (format?.type !== "json_schema") return format ?? { type: "text" };
  return { ...format, description: format.description ?? null, strict: format.strict ?? false };
}

/** The choice of the request, without the tools that are left out. */
function toShownChoice(choice: ResponsesBody["tool_choice"]): unknown {
  if (typeof choice !== "object" || choice?.type !== "allowed_tools") return choice ?? "auto";
  return { ...choice, tools: choice.tools.filter(({ type }) => type !== "other") };
}

/** Names the items of a response, by their kinds and places. */
function itemNames(responseId: string) {
  const ulid = responseId.slice(responseId.indexOf("_") + 1);
  return (kind: string, place: number) => `${kind}_${ulid}_${place}`;
}

/** The items of a response that has begun, and their events. They are named after it, by their places. */
export function beginOutput(
  { id, store }: ResponseObject,
  body: ResponsesBody,
  emit: OutputOptions["emit"],
  firstItem = 0,
) {
  const toItemId = itemNames(id);
  const sealing = { isShown: body.include?.includes(sealedReasoning) === true, isKept: store };
  const areResultsShown = body.include?.includes(searchResults) === true;
  return makeResponseOutput({ toItemId, sealing, areResultsShown, emit, findTool: makeFindTool(body), firstItem });
}

type Ended = Pick<
  ChatOutcome,
  "finishReason" | "providerFinishReason" | "model" | "usage" | "logId" | "costUsd" | "cached"
>;

/** A response that came to its end, with what it cost. */
export function endResponse(
  begun: ResponseObject,
  output: ResponseObject["output"],
  { finishReason, providerFinishReason, model, usage, logId, costUsd, cached }: Ended,
): ResponseObject {
  const reason = incompleteReasons[finishReason];
  return {
    ...begun,
    completed_at: secondsNow(),
    status: reason ? "incomplete" : "completed",
    incomplete_details: reason ? { reason } : null,
    model,
    output,
    usage: toUsage(usage),
    logId,
    costUsd,
    cached,
    ...defined({ providerFinishReason }),
  };
}

/** A response that failed. OpenAI's clients know two codes: of one that may be asked for again later, and of any other. */
export function failResponse(
  begun: ResponseObject,
  { code, message, details }: Pick<ErrorView, "code" | "message" | "details">,
): ResponseObject {
  const isLimited = code === "provider_rate_limited" || code === "rate_limited";
  const error = defined({ code: isLimited ? "rate_limit_exceeded" : "server_error", message, details });
  return { ...begun, status: "failed", error };
}

const incompleteReasons = {
  stop: undefined,
  tool_calls: undefined,
  length: "max_output_tokens",
  content_filter: "content_filter",
} as const;

/** Whether a response says all that the model had to say. */
export const isWhole = (finishReason: ChatOutcome["finishReason"]) => incompleteReasons[finishReason] === undefined;

/** A response that has ended, and its items as they are kept. */
export type MadeResponse = { response: ResponseObject; kept: OutputItem[] };

/** The response of a chat. */
export function toResponse(begun: ResponseObject, body: ResponsesBody, outcome: AnsweredResponse): MadeResponse {
  const { steps, reasoning, ...answer } = outcome;
  const isText = answer.text !== "" && answer.toolCalls.length === 0 && !(steps ?? reasoning ?? answer.parts);
  if (isText) {
    const item = toTextItem(itemNames(begun.id)("msg", 0), answer.text, isWhole(outcome.finishReason));
    return { response: endResponse(begun, [item], outcome), kept: begun.store ? [item] : [] };
  }
  const output = beginOutput(begun, body, undefined);
  for (const delta of steps ?? []) output.take(delta);
  for (const delta of toDeltas({ ...answer, ...(steps || reasoning === undefined ? {} : { reasoning }) }))
    output.take(delta);
  output.end(isWhole(outcome.finishReason));
  return { response: endResponse(begun, output.items, outcome), kept: begun.store ? output.kept() : [] };
}

export function toUsage(usage: Usage) {
  const { inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0 } = usage;
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  };
}
