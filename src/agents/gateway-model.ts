import { BaseChatModel, type BaseChatModelCallOptions } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import type { Runnable } from "@langchain/core/runnables";
import type { Message, ToolCall } from "../gateway/providers/provider.ts";

/** What a model said. */
export type ModelTurn = { text: string; calls: ToolCall[] };

/**
 * The gateway as a chat model of LangChain. It is a model of our own and no OpenAI client with a `fetch` of ours: the gateway
 * is in this process, so a wire format between would only cost time, its errors would lose what they are (retryable or not,
 * whose they are), and the client would bring tries of its own beside the gateway's.
 */
export class GatewayModel extends BaseChatModel<BaseChatModelCallOptions> {
  readonly #ask: (messages: Message[]) => Promise<ModelTurn>;

  constructor(ask: (messages: Message[]) => Promise<ModelTurn>) {
    super({ disableStreaming: true, maxRetries: 0 });
    this.#ask = ask;
  }

  override _llmType(): string {
    return "gateway";
  }

  /** The tools are known to the run, which hands them to the gateway itself. */
  override bindTools(): this & Runnable {
    return this as this & Runnable;
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const turn = await this.#ask(messages.map(toMessage));
    return { generations: [{ text: turn.text, message: toAiMessage(turn) }] };
  }
}

/** A turn as LangChain keeps it. */
export function toAiMessage({ text, calls }: ModelTurn): AIMessage {
  const toolCalls = calls.map(({ id, name, arguments: json }) => ({
    id,
    name,
    args: toArguments(json),
    type: "tool_call" as const,
  }));
  return new AIMessage({ content: text, tool_calls: toolCalls });
}

/** A message as the gateway takes it. */
function toMessage(message: BaseMessage): Message {
  const content = message.text;
  if (ToolMessage.isInstance(message)) return { role: "tool", content, toolCallId: message.tool_call_id };
  if (!AIMessage.isInstance(message)) return { role: message.type === "system" ? "system" : "user", content };
  const calls = (message.tool_calls ?? []).map(({ id = "", name, args }) => ({
    id,
    name,
    arguments: JSON.stringify(args),
  }));
  return calls.length === 0 ? { role: "assistant", content } : { role: "assistant", content, toolCalls: calls };
}

/** What is no JSON object is told to the model as such; in the conversation it stands as an empty one, which providers take. */
function toArguments(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
  } catch {
    return {};
  }
}
