import { AppError } from "../../errors.ts";
import type { Message, Sampling, ToolCall, ToolChoice, ToolDefinition } from "../providers/provider.ts";
import type { ChatBody } from "../schemas.ts";

/** A chat as the rest of the product asks for it. `model` may be an alias or `auto`. */
export type ChatRequest = {
  messages: Message[];
  model: string;
  temperature?: number;
  /** The temperature of models that take this one; others answer at their own, where `temperature` would be refused. */
  preferredTemperature?: number;
  maxTokens?: number;
  /** Put before the messages as a system message. */
  systemPrompt?: string;
  tools?: ToolDefinition[];
  toolChoice?: ToolChoice;
  options?: ChatOptions;
} & Sampling;

/** What is done with a chat on its way. Without `cache`, a chat at temperature 0 is cached. */
export type ChatOptions = { compress?: boolean; cache?: boolean; cacheTtlSeconds?: number };

/**
 * The request that a body of `POST /ai/chat` makes.
 * @throws AppError `invalid_request` for `maxTokens` and `max_tokens` that differ, and for a choice of a tool that is not given.
 */
export function toChatRequest(body: ChatBody): ChatRequest {
  const { maxTokens: camel, max_tokens: snake } = body;
  if (camel !== undefined && snake !== undefined && camel !== snake) {
    throw new AppError("invalid_request", "maxTokens and max_tokens are the same setting and must not differ.", {
      param: "max_tokens",
    });
  }
  const maxTokens = camel ?? snake;
  const tools = body.tools?.map(({ function: { name, description, parameters } }) => ({
    name,
    ...(description === undefined ? {} : { description }),
    ...(parameters === undefined ? {} : { parameters }),
  }));
  const toolChoice = toToolChoice(body, tools);
  return {
    messages: body.messages.map(toMessage),
    model: body.model,
    ...(body.temperature === undefined ? {} : { temperature: body.temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(body.systemPrompt === undefined ? {} : { systemPrompt: body.systemPrompt }),
    ...(tools === undefined ? {} : { tools }),
    ...(toolChoice === undefined ? {} : { toolChoice }),
  };
}

function toMessage(message: ChatBody["messages"][number], place: number): Message {
  if (message.role === "tool") return { role: "tool", content: message.content, toolCallId: message.tool_call_id };
  if (message.role !== "assistant") return { role: message.role, content: message.content };
  const calls = message.tool_calls ?? message.toolCalls;
  if (calls === undefined && (message.content === undefined || message.content === null)) {
    throw new AppError("invalid_request", "A message without tool calls needs content.", {
      param: `messages[${place}].content`,
    });
  }
  const content = message.content ?? "";
  return calls === undefined
    ? { role: "assistant", content }
    : { role: "assistant", content, toolCalls: calls.map(toToolCall) };
}

function toToolCall(call: { id: string; function: { name: string; arguments: string } }): ToolCall {
  return { id: call.id, name: call.function.name, arguments: call.function.arguments };
}

function toToolChoice(body: ChatBody, tools: ToolDefinition[] | undefined): ToolChoice | undefined {
  if (body.tool_choice === undefined) return undefined;
  const choice = typeof body.tool_choice === "string" ? body.tool_choice : { name: body.tool_choice.function.name };
  const isGiven =
    typeof choice === "string"
      ? tools !== undefined || choice === "none"
      : tools?.some(({ name }) => name === choice.name);
  if (!isGiven) {
    throw new AppError("invalid_request", "tool_choice asks for a tool that tools does not hold.", {
      param: "tool_choice",
    });
  }
  // Without tools, "none" says nothing, and some servers refuse it.
  return tools === undefined ? undefined : choice;
}
