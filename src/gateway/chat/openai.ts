import { AppError } from "../../errors.ts";
import type { OpenAiChatBody, OpenAiCompletion } from "../openai-schemas.ts";
import type { ChatResponse } from "../schemas.ts";
import type { ChatOutcome } from "./complete.ts";
import { type ChatRequest, toChatRequest } from "./request.ts";
import { toWireToolCall } from "./response.ts";

/**
 * The chat that a body in OpenAI's shape asks for.
 * @throws AppError `invalid_request` for what `toChatRequest` refuses.
 */
export function fromOpenAi(body: OpenAiChatBody): ChatRequest {
  const maxTokens = body.max_completion_tokens ?? body.max_tokens;
  const { top_p: topP, seed, response_format: format } = body;
  const stop = typeof body.stop === "string" ? [body.stop] : (body.stop ?? undefined);
  const hasTools = body.tools !== undefined && body.tools.length > 0;
  return {
    ...toChatRequest({
      messages: body.messages.map(toMessage),
      model: body.model,
      stream: false,
      temperature: body.temperature ?? undefined,
      maxTokens: maxTokens ?? undefined,
      tools: hasTools ? body.tools : undefined,
      tool_choice: hasTools || body.tool_choice !== "auto" ? body.tool_choice : undefined,
    }),
    ...(typeof topP === "number" ? { topP } : {}),
    ...(typeof seed === "number" ? { seed } : {}),
    ...(stop !== undefined && stop.length > 0 ? { stop } : {}),
    // Text is what every model writes.
    ...(format && format.type !== "text" ? { responseFormat: format } : {}),
  };
}

function toMessage(message: OpenAiChatBody["messages"][number]) {
  const { content: given } = message;
  const content = Array.isArray(given) ? given.map((part) => part.text).join("\n") : given;
  if (message.role === "assistant") return { ...message, content };
  if (content === null || content === undefined) throw new AppError("invalid_request", "A message needs content.");
  if (message.role === "tool") return { ...message, content };
  return { role: message.role === "user" ? ("user" as const) : ("system" as const), content };
}

export const secondsNow = () => Math.floor(Date.now() / 1_000);

/** Tokens in OpenAI's words. */
export function toUsage({ inputTokens, outputTokens }: ChatOutcome["usage"]) {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
}

/** A completion as OpenAI answers it: a message that only calls tools has no content. */
export function toCompletion(outcome: ChatOutcome): OpenAiCompletion {
  const { text, toolCalls, reasoning, finishReason, model, logId, costUsd, cached } = outcome;
  return {
    id: `chatcmpl-${logId}`,
    object: "chat.completion",
    created: secondsNow(),
    model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text === "" && toolCalls.length > 0 ? null : text,
          refusal: null,
          ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
          ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls.map(toWireToolCall) }),
        },
        logprobs: null,
        finish_reason: finishReason,
      },
    ],
    usage: toUsage(outcome.usage),
    logId,
    costUsd,
    cached,
  };
}

/** The same of an answer that was kept as `POST /ai/chat` gives it. */
export function toCompletionOf(answer: ChatResponse): OpenAiCompletion {
  const [choice] = answer.choices;
  const { text, toolCalls, reasoning, logId, costUsd, cached, model, usage } = answer;
  return {
    id: `chatcmpl-${logId}`,
    object: "chat.completion",
    created: secondsNow(),
    model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text === "" && toolCalls !== undefined ? null : text,
          refusal: null,
          ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
          ...(toolCalls === undefined ? {} : { tool_calls: toolCalls }),
        },
        logprobs: null,
        finish_reason: choice?.finish_reason ?? "stop",
      },
    ],
    usage,
    logId,
    costUsd,
    cached,
  };
}
