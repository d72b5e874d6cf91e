import { defined } from "../../../lib/defined.ts";
import { invalidRequest } from "../../../lib/errors.ts";
import { type AssistantPart, type Content, type ContentPart, type Message, textOf } from "../../messages.ts";
import type { CompletionRequest } from "../provider.ts";

/** Where servers of this wire format differ. */
export type WireDialect = {
  /** OpenAI's newer models refuse `max_tokens`; most other servers know only that. */
  maxTokensField: "max_tokens" | "max_completion_tokens";
  /** OpenAI refuses `reasoning_details`, in which other gateways give reasoning that is to come back. */
  hasReasoningDetails?: true;
};

/** The text of a tool's result that has none. */
const RESULT_FOLLOWS = "The result is in the next message of the user.";

/** The body of `POST /chat/completions`, as JSON text. A streamed answer is asked to end with its usage. */
export function toWireChat(request: CompletionRequest, dialect: WireDialect, isStreamed: boolean): string {
  return JSON.stringify({
    model: request.model,
    messages: toWireMessages(request.messages, dialect),
    temperature: request.temperature, // JSON leaves out what is undefined
    [dialect.maxTokensField]: request.maxTokens,
    tools: request.tools?.map((tool) => ({ type: "function", function: tool })),
    tool_choice: toWireToolChoice(request),
    parallel_tool_calls: request.parallelToolCalls,
    reasoning_effort: request.effort,
    top_p: request.topP,
    stop: request.stop,
    seed: request.seed,
    response_format: request.responseFormat,
    user: request.user,
    verbosity: request.verbosity,
    metadata: request.metadata,
    safety_identifier: request.safetyIdentifier,
    service_tier: request.serviceTier,
    prompt_cache_key: request.promptCacheKey,
    presence_penalty: request.presencePenalty,
    frequency_penalty: request.frequencyPenalty,
    logit_bias: request.logitBias,
    prediction: request.prediction,
    logprobs: request.logprobs,
    top_logprobs: request.topLogprobs,
    ...(isStreamed ? { stream: true, stream_options: { include_usage: true } } : {}),
  });
}

/**
 * A tool's message holds text alone, and must follow its call: pictures and files of results come in a user's message after
 * the last of them (https://platform.openai.com/docs/api-reference/chat/create, "Tool message").
 */
function toWireMessages(messages: readonly Message[], dialect: WireDialect): unknown[] {
  const wire: unknown[] = [];
  let media: unknown[] = [];
  for (const message of messages) {
    if (media.length > 0 && message.role !== "tool") {
      wire.push({ role: "user", content: media });
      media = [];
    }
    wire.push(toWireMessage(message, dialect));
    if (message.role === "tool" && typeof message.content !== "string") {
      const ofResult = message.content.filter(({ type }) => type !== "text");
      media.push({ type: "text", text: `From the result of ${message.toolCallId}:` }, ...ofResult.map(toWirePart));
    }
  }
  if (media.length > 0) wire.push({ role: "user", content: media });
  return wire;
}

function toWireMessage(message: Message, { hasReasoningDetails }: WireDialect): unknown {
  if (message.role === "tool") {
    const content = textOf(message.content) || (typeof message.content === "string" ? "" : RESULT_FOLLOWS);
    return { role: "tool", content, tool_call_id: message.toolCallId };
  }
  if (message.role !== "assistant") return { role: message.role, content: toWireContent(message.content) };
  const { content, toolCalls } = message;
  const details = hasReasoningDetails && toDetails(message.parts);
  if (toolCalls === undefined) return defined({ role: "assistant", content, reasoning_details: details });
  return defined({
    role: "assistant",
    content: content === "" ? null : content,
    tool_calls: toolCalls.map(({ id, ...called }) => ({ id, type: "function", function: called })),
    reasoning_details: details,
  });
}

const toDetails = (parts: readonly AssistantPart[] | undefined) =>
  parts?.flatMap((part) => (part.type === "reasoning" ? [part.item] : []));

const toWireContent = (content: Content) => (typeof content === "string" ? content : content.map(toWirePart));

/** The same page, "Content parts". @throws AppError `invalid_request` for a file by its URL, which this API does not read. */
function toWirePart(part: ContentPart): unknown {
  if (part.type === "text") return part;
  if (part.type === "image") return { type: "image_url", image_url: defined({ url: part.url, detail: part.detail }) };
  const { url, name = "document.pdf" } = part;
  if (!url.startsWith("data:"))
    throw invalidRequest("messages", `This model reads no file from a URL: send ${name} as a data: URL.`);
  return { type: "file", file: { filename: name, file_data: url } };
}

function toWireToolChoice({ toolChoice: choice, allowedTools }: CompletionRequest): unknown {
  if (allowedTools !== undefined)
    return { type: "allowed_tools", allowed_tools: { mode: choice, tools: allowedTools.map(toWireFunction) } };
  return typeof choice === "object" ? toWireFunction(choice.name) : choice;
}

const toWireFunction = (name: string) => ({ type: "function", function: { name } });
