import {
  BaseChatModel,
  type BaseChatModelCallOptions,
  type BindToolsInput,
} from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, type StandardMessageStructure, ToolMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { isLangChainTool } from "@langchain/core/tools";
import { z } from "zod";
import type { ChatOutcome } from "../gateway/chat/outcome.ts";
import type { Message } from "../gateway/messages.ts";
import type { ToolDefinition } from "../gateway/providers/provider.ts";
import { defined } from "../lib/defined.ts";
import { type JsonSchema, toJsonSchema } from "../lib/json-schema.ts";
import type { AuditSpent } from "../store/audit-store.ts";
import { parseArguments } from "./arguments.ts";

/** A response of the gateway; `spent` counts the attempts that failed on the way to it too. */
export type GatewayAnswer = { outcome: ChatOutcome; spent: AuditSpent };
type Ask = (messages: Message[], tools: ToolDefinition[]) => Promise<GatewayAnswer>;
type CallOptions = BaseChatModelCallOptions & { tools?: ToolDefinition[] };

/**
 * The gateway as a chat model of LangChain. It is no OpenAI client with a custom `fetch`: the gateway is in this process, so a
 * wire format between would cost time, lose what kind an error is, and retry beside the gateway's own retries.
 */
export class GatewayModel extends BaseChatModel<CallOptions> {
  readonly #ask: Ask;
  /** Of each tool once, although a run binds its tools at each call. */
  readonly #definitions = new Map<BindToolsInput, ToolDefinition>();

  constructor(ask: Ask) {
    super({ disableStreaming: true, maxRetries: 0 });
    this.#ask = ask;
  }

  override _llmType(): string {
    return "gateway";
  }

  override bindTools(tools: BindToolsInput[]) {
    for (const tool of tools) if (!this.#definitions.has(tool)) this.#definitions.set(tool, toDefinition(tool));
    return this.withConfig({ tools: tools.flatMap((tool) => this.#definitions.get(tool) ?? []) });
  }

  override async _generate(messages: BaseMessage[], { tools = [] }: this["ParsedCallOptions"]): Promise<ChatResult> {
    const message = new GatewayMessage(await this.#ask(messages.map(toMessage), tools));
    return { generations: [{ text: message.text, message }] };
  }
}

/** A response as LangChain has it, with the answer that it was made of. */
export class GatewayMessage extends AIMessage<StandardMessageStructure> {
  readonly answer: GatewayAnswer;

  constructor(answer: GatewayAnswer) {
    const { text, toolCalls, usage, model, provider, finishReason, logId, costUsd } = answer.outcome;
    const { inputTokens, outputTokens, cachedTokens, cacheWriteTokens, reasoningTokens } = usage;
    super({
      content: text,
      tool_calls: toolCalls.map(toLangChainCall),
      usage_metadata: {
        input_tokens: inputTokens,
        output_tokens: outputTokens,
        total_tokens: inputTokens + outputTokens,
        input_token_details: defined({ cache_read: cachedTokens, cache_creation: cacheWriteTokens }),
        output_token_details: defined({ reasoning: reasoningTokens }),
      },
      response_metadata: { model_name: model, model_provider: provider, finish_reason: finishReason, logId, costUsd },
    });
    this.answer = answer;
  }
}

/** A tool call as LangChain keeps it. Arguments that are no JSON object become `{}`, as providers require. */
export function toLangChainCall({ id, name, arguments: json }: { id: string; name: string; arguments: string }) {
  return { id, name, args: parseArguments(json) ?? {}, type: "tool_call" as const };
}

/** A tool call of LangChain's as the gateway takes it. */
export const toGatewayCall = ({ id = "", name, args }: LangChainCall) => ({
  id,
  name,
  arguments: JSON.stringify(args),
});
type LangChainCall = { id?: string; name: string; args: unknown };

/** A tool as the gateway takes it. `extras.parameters` is JSON Schema of a server's own, which only the model reads. */
function toDefinition(tool: BindToolsInput): ToolDefinition {
  if (!isLangChainTool(tool)) throw new TypeError("a tool of an agent is no LangChain tool");
  const { name, description = "", schema, extras } = tool;
  const own = schema instanceof z.ZodType ? toJsonSchema(schema, "input") : schema;
  return { name, description, parameters: (extras?.parameters ?? own) as JsonSchema }; // both are JSON Schema
}

/** A message as the gateway takes it. */
function toMessage(message: BaseMessage): Message {
  const content = message.text;
  if (ToolMessage.isInstance(message)) return { role: "tool", content, toolCallId: message.tool_call_id };
  if (!AIMessage.isInstance(message)) return { role: message.type === "system" ? "system" : "user", content };
  const calls = (message.tool_calls ?? []).map(toGatewayCall);
  return calls.length === 0 ? { role: "assistant", content } : { role: "assistant", content, toolCalls: calls };
}
