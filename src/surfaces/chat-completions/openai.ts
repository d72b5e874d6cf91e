import { type ChatRequest, toChatRequest } from "../../gateway/chat/request.ts";
import type { PlacedCitation } from "../../gateway/citation.ts";
import type { ChatResponse } from "../../gateway/schemas.ts";
import { defined } from "../../lib/defined.ts";
import type { OpenAiChatBody, OpenAiCompletion } from "./openai-schemas.ts";

/** The chat that a body in OpenAI's shape asks for. @throws AppError `invalid_request` for what `toChatRequest` refuses. */
export function fromOpenAi(body: OpenAiChatBody): ChatRequest {
  const hasTools = (body.tools ?? []).length > 0;
  return toChatRequest({
    ...body,
    stream: false,
    messages: body.messages.map(toMessage),
    max_tokens: body.max_completion_tokens ?? body.max_tokens,
    tools: hasTools ? body.tools : undefined,
    tool_choice: hasTools || body.tool_choice !== "auto" ? body.tool_choice : undefined,
  });
}

function toMessage(message: OpenAiChatBody["messages"][number]) {
  if (message.role === "user" || message.role === "assistant" || message.role === "tool") return message;
  return { role: "system" as const, content: message.content };
}

export const secondsNow = () => Math.floor(Date.now() / 1_000);

/** A response of `POST /ai/chat` as OpenAI gives it: a message that only calls tools has no content. */
export function toCompletion(response: ChatResponse): OpenAiCompletion {
  const { choices, text, toolCalls, reasoning, logId, costUsd, cached, model, usage, providerFinishReason } = response;
  const { citations } = response;
  const details = choices[0]?.message.reasoning_details;
  const message = {
    reasoning_content: reasoning,
    reasoning_details: details,
    tool_calls: toolCalls,
    annotations: toAnnotations(citations),
  };
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
          ...defined(message),
        },
        logprobs: choices[0]?.logprobs ?? null,
        finish_reason: choices[0]?.finish_reason ?? "stop",
      },
    ],
    usage,
    logId,
    costUsd,
    cached,
    ...defined({ providerFinishReason, citations }),
  };
}

/** Citations in OpenAI's shape, which has pages alone: of documents that were read from a URL. */
export function toAnnotations(citations: readonly PlacedCitation[] | undefined) {
  return citations?.flatMap(({ title, url, startIndex: start_index, endIndex: end_index }) => {
    const isPage = url !== undefined && /^https?:/i.test(url);
    return isPage ? [{ type: "url_citation" as const, url_citation: { start_index, end_index, title, url } }] : [];
  });
}
