import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { createAgent, createMiddleware } from "langchain";
import type { Message } from "../gateway/providers/provider.ts";
import { GatewayModel, type ModelTurn, toAiMessage } from "./gateway-model.ts";

/** Steps of LangGraph that one iteration takes at most. */
const GRAPH_STEPS_AN_ITERATION = 4;

export type LoopInput = {
  systemPrompt: string;
  /** Earlier turns of the session, and at last what is asked. */
  messages: readonly { role: "user" | "assistant"; content: string }[];
  maxIterations: number;
  /** The recorded answer of the model that is next; undefined when the model has to be asked. */
  recall(): ModelTurn | undefined;
  /** Asks the model, and records its answer before it is acted on. */
  think(messages: Message[]): Promise<ModelTurn>;
  /** Makes a tool call, unless its observation is recorded already; what the model observes. */
  act(callId: string): Promise<string>;
  /** Called at the first failure: ends the calls that are made side by side with what failed. */
  giveUp(): void;
};

/**
 * The loop of an agent, think, act, observe, until the model answers without a tool call: LangChain's agent, with middleware
 * that lets each answer and each tool call pass through the run's trail. The tools are run by `act` and not by LangChain, whose
 * own way loses what a failed call was. What `recall`, `think` or `act` throws ends the loop and is thrown as it is.
 */
export async function runLoop(input: LoopInput): Promise<void> {
  const pending = new Set<Promise<unknown>>();
  let failure: { error: unknown } | undefined;
  const watched = async <T>(work: () => Promise<T>): Promise<T> => {
    const working = work().catch((error: unknown) => {
      failure ??= { error }; // LangChain wraps it
      input.giveUp();
      throw error;
    });
    pending.add(working);
    try {
      return await working;
    } finally {
      pending.delete(working);
    }
  };
  const trail = createMiddleware({
    name: "trail",
    wrapModelCall: async (request, handler) => {
      const known = input.recall();
      return known ? toAiMessage(known) : handler(request);
    },
    wrapToolCall: ({ toolCall: { id = "", name } }) =>
      watched(async () => new ToolMessage({ content: await input.act(id), tool_call_id: id, name })),
  });
  const agent = createAgent({
    model: new GatewayModel((messages) => watched(() => input.think(messages))),
    systemPrompt: input.systemPrompt,
    middleware: [trail],
    version: "v1", // the calls of one answer are made side by side in one step
  });
  const messages: BaseMessage[] = input.messages.map(({ role, content }) =>
    role === "user" ? new HumanMessage(content) : new AIMessage(content),
  );
  try {
    await agent.invoke({ messages }, { recursionLimit: (input.maxIterations + 2) * GRAPH_STEPS_AN_ITERATION });
  } catch (error) {
    await Promise.allSettled(pending); // calls side by side with the one that failed
    throw failure ? failure.error : error;
  }
}
