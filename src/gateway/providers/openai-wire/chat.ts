import {
  type CompletionRequest,
  type CompletionResult,
  type FinishReason,
  type Message,
  type Served,
  type ToolCall,
  toServed,
  type Usage,
} from "../provider.ts";
import { malformed, parseJson } from "../wire-errors.ts";
import { type WireCompletion, type WireUsage, wireCompletion } from "./schemas.ts";

/** Where servers of this wire format differ. */
export type WireDialect = {
  /** OpenAI's newer models refuse `max_tokens`; most other servers know only that. */
  maxTokensField: "max_tokens" | "max_completion_tokens";
};

/** The body of `POST /chat/completions`, as JSON text. A streamed answer is asked to end with its usage. */
export function toWireChat(request: CompletionRequest, dialect: WireDialect, isStreamed: boolean): string {
  return JSON.stringify({
    model: request.model,
    messages: request.messages.map(toWireMessage),
    ...(request.temperature === undefined ? {} : { temperature: request.temperature }),
    ...(request.maxTokens === undefined ? {} : { [dialect.maxTokensField]: request.maxTokens }),
    ...(request.tools === undefined
      ? {}
      : { tools: request.tools.map((tool) => ({ type: "function", function: tool })) }),
    ...(request.toolChoice === undefined ? {} : { tool_choice: toWireToolChoice(request.toolChoice) }),
    ...(request.reasoningEffort === undefined ? {} : { reasoning_effort: request.reasoningEffort }),
    ...(request.topP === undefined ? {} : { top_p: request.topP }),
    ...(request.stop === undefined ? {} : { stop: request.stop }),
    ...(request.seed === undefined ? {} : { seed: request.seed }),
    ...(request.responseFormat === undefined ? {} : { response_format: request.responseFormat }),
    ...(isStreamed ? { stream: true, stream_options: { include_usage: true } } : {}),
  });
}

function toWireMessage(message: Message): unknown {
  if (message.role === "tool") return { role: "tool", content: message.content, tool_call_id: message.toolCallId };
  if (message.role !== "assistant" || message.toolCalls === undefined)
    return { role: message.role, content: message.content };
  const toolCalls = message.toolCalls.map(({ id, name, arguments: text }) => ({
    id,
    type: "function",
    function: { name, arguments: text },
  }));
  return { role: "assistant", content: message.content === "" ? null : message.content, tool_calls: toolCalls };
}

function toWireToolChoice(choice: NonNullable<CompletionRequest["toolChoice"]>): unknown {
  return typeof choice === "string" ? choice : { type: "function", function: { name: choice.name } };
}

/**
 * Reads the answer of `POST /chat/completions`.
 * @throws AppError `provider_failed` when it is not one.
 */
export function fromWireChat(body: string, requestedModel: string): CompletionResult {
  const parsed = wireCompletion.safeParse(parseJson(body));
  if (!parsed.success) throw malformed("an answer that is not a chat completion", parsed.error);
  return toResult(parsed.data, requestedModel);
}

/** What a completion tells and says that broke off or does not fit; undefined when it is none at all. */
export function measureWireChat(begun: unknown): Served | undefined {
  const parsed = wireCompletion.safeParse(begun);
  return parsed.success ? toServed(toResult(parsed.data, "")) : undefined;
}

function toResult({ choices, usage: told, model }: WireCompletion, requestedModel: string): CompletionResult {
  const [{ message, finish_reason: finishReason }] = choices;
  const toolCalls: ToolCall[] = (message.tool_calls ?? []).map((call, n) => ({
    id: call.id ?? `call_${n}`,
    name: call.function.name,
    arguments: call.function.arguments,
  }));
  const reasoning = message.reasoning_content ?? message.reasoning;
  const usage = fromWireUsage(told);
  return {
    text: message.content ?? message.refusal ?? "",
    ...(reasoning ? { reasoning } : {}),
    toolCalls,
    finishReason: toFinishReason(finishReason ?? undefined, toolCalls.length > 0),
    ...(usage === undefined ? {} : { usage }),
    model: model ?? requestedModel,
  };
}

const finishReasons: Record<string, FinishReason> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  content_filter: "content_filter",
};

/** The finish reason of the wire in ours. Unknown ones count as `stop`; some servers say `stop` although they call tools. */
export function toFinishReason(text: string | undefined, hasToolCalls: boolean): FinishReason {
  const reason = finishReasons[text ?? "stop"] ?? "stop";
  return reason === "stop" && hasToolCalls ? "tool_calls" : reason;
}

/** The usage of the wire in ours; undefined when the server told none. */
export function fromWireUsage(usage: WireUsage | null | undefined): Usage | undefined {
  if (typeof usage?.prompt_tokens !== "number") return undefined;
  const cachedTokens = usage.prompt_tokens_details?.cached_tokens;
  return {
    inputTokens: usage.prompt_tokens,
    outputTokens: Number(usage.completion_tokens ?? 0),
    ...(cachedTokens ? { cachedTokens } : {}),
  };
}
