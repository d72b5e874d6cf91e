import { BaseChatModel, type BaseChatModelCallOptions } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import type { Runnable } from "@langchain/core/runnables";
import { createAgent, createMiddleware } from "langchain";
import type { Message } from "../gateway/messages.ts";
import type { RunTurn } from "../store/agent-run-store.ts";
import { parseArguments } from "./arguments.ts";
import type { Iterations, ModelTurn } from "./iterations.ts";

/** Steps of LangGraph that one iteration takes at most. */
const GRAPH_STEPS_AN_ITERATION = 4;

export type LoopInput = {
  systemPrompt: string;
  /** What was said before, and at last the run's input. */
  messages: readonly RunTurn[];
  maxIterations: number;
  iterations: Pick<Iterations, "recall" | "think" | "act">;
  /** Called with the first failure: ends the calls that run in parallel with what failed. */
  giveUp(error: unknown): void;
};

/**
 * The loop of an agent, think, act, observe, until the model answers without a tool call. The project uses LangChain for it;
 * middleware lets each response and each tool call pass through the run's audit log. `act` runs the tools, and not LangChain,
 * which would lose what a failed call was. Errors of the iterations end the loop and are thrown unchanged.
 */
export async function runLoop({ iterations, ...input }: LoopInput): Promise<void> {
  const pending = new Set<Promise<unknown>>();
  let failure: { error: unknown } | undefined;
  const watched = async <T>(work: () => Promise<T>): Promise<T> => {
    const working = work().catch((error: unknown) => {
      failure ??= { error }; // LangChain wraps it
      input.giveUp(error);
      throw error;
    });
    pending.add(working);
    try {
      return await working;
    } finally {
      pending.delete(working);
    }
  };
  const audited = createMiddleware({
    name: "audit",
    wrapModelCall: async (request, handler) => {
      const known = iterations.recall();
      return known ? toAiMessage(known) : handler(request);
    },
    wrapToolCall: ({ toolCall: { id = "", name } }) =>
      watched(async () => new ToolMessage({ content: await iterations.act(id), tool_call_id: id, name })),
  });
  const agent = createAgent({
    model: new GatewayModel((messages) => watched(() => iterations.think(messages))),
    systemPrompt: input.systemPrompt,
    middleware: [audited],
    version: "v1", // the calls of one response run in parallel in one step
  });
  const messages = input.messages.map(({ role, content }) => new messageOf[role](content));
  try {
    await agent.invoke({ messages }, { recursionLimit: (input.maxIterations + 2) * GRAPH_STEPS_AN_ITERATION });
  } catch (error) {
    await Promise.allSettled(pending); // calls that ran in parallel with the one that failed
    throw failure ? failure.error : error;
  }
}

const messageOf = { system: SystemMessage, user: HumanMessage, assistant: AIMessage };

/**
 * The gateway as a chat model of LangChain. It is no OpenAI client with a custom `fetch`: the gateway is in this process, so a
 * wire format between would cost time, lose what kind an error is, and retry beside the gateway's own retries.
 */
class GatewayModel extends BaseChatModel<BaseChatModelCallOptions> {
  readonly #ask: (messages: Message[]) => Promise<ModelTurn>;

  constructor(ask: (messages: Message[]) => Promise<ModelTurn>) {
    super({ disableStreaming: true, maxRetries: 0 });
    this.#ask = ask;
  }

  override _llmType(): string {
    return "gateway";
  }

  /** The run passes its tools to the gateway itself. */
  override bindTools(): this & Runnable {
    return this as this & Runnable;
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const turn = await this.#ask(messages.map(toMessage));
    return { generations: [{ text: turn.text, message: toAiMessage(turn) }] };
  }
}

/** A turn as LangChain keeps it. Arguments that are no JSON object become `{}`, as providers require; the observation says so. */
function toAiMessage({ text, calls }: ModelTurn): AIMessage {
  const toolCalls = calls.map(({ id, name, arguments: json }) => {
    return { id, name, args: parseArguments(json) ?? {}, type: "tool_call" as const };
  });
  return new AIMessage({ content: text, tool_calls: toolCalls });
}

/** A message as the gateway takes it. */
function toMessage(message: BaseMessage): Message {
  const content = message.text;
  if (ToolMessage.isInstance(message)) return { role: "tool", content, toolCallId: message.tool_call_id };
  if (!AIMessage.isInstance(message)) return { role: message.type === "system" ? "system" : "user", content };
  const calls = (message.tool_calls ?? []).map(({ id = "", name, args }) => {
    return { id, name, arguments: JSON.stringify(args) };
  });
  return calls.length === 0 ? { role: "assistant", content } : { role: "assistant", content, toolCalls: calls };
}
