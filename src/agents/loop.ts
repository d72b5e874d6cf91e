import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { createAgent, createMiddleware, MiddlewareError, type WrapToolCallHook } from "langchain";
import type { Gateway } from "../gateway/gateway.ts";
import type { Message } from "../gateway/messages.ts";
import type { AgentRunRecord, RunTurn } from "../store/agent-run-store.ts";
import type { AuditCall, AuditContent } from "../store/audit-store.ts";
import type { Refusal } from "./approve-call.ts";
import { parseArguments } from "./arguments.ts";
import { askModel, toTurn } from "./ask-model.ts";
import { GatewayMessage, GatewayModel, toGatewayCall, toLangChainCall } from "./gateway-model.ts";
import type { Iterations, Turn, WholeTurn } from "./iterations.ts";
import { type ObserveDeps, observeCall, refuseCall } from "./observe-call.ts";
import { isPause, joinPauses, type Pause, RunStopped } from "./run-state.ts";

/** Steps of LangGraph that one iteration takes at most. */
const GRAPH_STEPS_AN_ITERATION = 4;

/** What followers of a run receive of it: nothing that was said. */
export type RunStepEvent = { event: AuditContent["kind"]; index: number; action?: string; isError?: boolean };

export type Loop = ObserveDeps & {
  run: AgentRunRecord;
  /** Whether a call may be made with these arguments; see `approveCall`. */
  approve(call: AuditCall, args: Record<string, unknown>): Promise<Refusal | undefined>;
  /** Throws when the run has kept its worker for long enough: others have a turn then. */
  yieldTurn(): void;
  gateway: Pick<Gateway, "complete">;
  iterations: Iterations;
  /** `known`: how many iterations there are, the next one included. */
  notify(event: RunStepEvent, known: number): Promise<void>;
};

type LoopInput = Loop & {
  systemPrompt: string;
  /** What was said before, and at last the run's input. */
  messages: readonly RunTurn[];
  /** Called with the error that ends the loop: ends the calls that run in parallel with what failed. */
  giveUp(error: unknown): void;
};

/** Stands for the observation of a call that waits: it is never recorded, and no model reads it. */
const NOT_OBSERVED = { output: "", isError: false };

/**
 * The loop of an agent, think, act, observe, until the model answers without a tool call, on LangChain. There is no
 * checkpointer: a run resumes from its audit log. Errors of the model call, of the tools and of the log are thrown unchanged.
 */
export async function runLoop(input: LoopInput): Promise<void> {
  const { run, iterations } = input;
  const pending = new Set<Promise<unknown>>();
  /** What calls of a response wait for, by their places in it. */
  const pauses: Pause[] = [];
  const watched = <T>(working: Promise<T>): Promise<T> => {
    pending.add(working);
    return working.finally(() => pending.delete(working));
  };
  const audit = createMiddleware({
    name: "audit",
    async wrapModelCall(request, handler) {
      // The calls of a response that need not wait have been made, whatever the others wait for.
      if (pauses.length > 0) throw joinPauses(Object.values(pauses));
      return toAiMessage(iterations.recall() ?? (await think(input, async () => handler(request))));
    },
    wrapToolCall: (request, handler) =>
      watched(
        act(input, request.toolCall, async (toolCall) => handler({ ...request, toolCall })).catch((error: unknown) => {
          if (!isPause(error)) throw error;
          pauses[iterations.callOf(request.toolCall.id ?? "")?.place ?? pauses.length] = error;
          return toToolMessage(request.toolCall, NOT_OBSERVED);
        }),
      ),
    // Without it LangChain ends the loop at calls of tools named `extract-…`, which it takes for structured answers.
    afterModel: () => undefined,
  });
  const recalled = iterations.recallWhole().flatMap(toMessages);
  const agent = createAgent({
    model: new GatewayModel((messages, tools) =>
      watched(askModel(input, insertRecalled(messages, recalled).map(iterations.withReasoning), tools)),
    ),
    systemPrompt: input.systemPrompt,
    tools: [...input.tools],
    middleware: [audit],
    version: "v1", // the calls of one response run in parallel in one step
  });
  const messages = input.messages.map(({ role, content }) => new messageOf[role](content));
  const recursionLimit = (run.definition.maxIterations + 2) * GRAPH_STEPS_AN_ITERATION;
  // Not the signal of the tool call that has begun this run: a response that came is recorded, whatever ends the run then.
  const { signal } = new AbortController();
  try {
    await agent.invoke({ messages }, { recursionLimit, signal });
  } catch (error) {
    const cause = error instanceof MiddlewareError ? (error.cause ?? error) : error;
    if (!isPause(cause)) input.giveUp(cause);
    await Promise.allSettled(pending); // calls that ran in parallel with the one that failed
    throw cause;
  }
}

/** Asks the model by `ask`, and records its response. @throws RunStopped; what `ask` throws. */
async function think(
  { run, iterations, signal, notify, yieldTurn }: Loop,
  ask: () => Promise<AIMessage>,
): Promise<Turn> {
  signal.throwIfAborted();
  yieldTurn();
  const index = iterations.count() + 1;
  if (index > run.definition.maxIterations) throw new RunStopped("max_iterations");
  const message = await ask();
  if (!(message instanceof GatewayMessage)) throw new TypeError("the model of a run is not the gateway");
  const isKnown = (callId: string) => iterations.callOf(callId) !== undefined;
  const turn = toTurn(message.answer, { runId: run._id, index, isKnown });
  await iterations.record(turn);
  const action = callsOf(turn)
    .map(({ name }) => name)
    .join(", ");
  const event = { event: turn.kind, index, ...(action === "" ? {} : { action }) };
  await notify(event, turn.kind === "intention" ? index + 1 : index);
  return turn;
}

type LangChainCall = Parameters<WrapToolCallHook>[0]["toolCall"];

/** The observation of a tool call: what is recorded of it, or what comes of `make`, which is recorded then. */
async function act(loop: Loop, asked: LangChainCall, makeCall: (call: LangChainCall) => Promise<unknown>) {
  const { iterations, notify } = loop;
  const { id = "", name } = asked;
  const known = iterations.recallResult(id);
  if (known) return toToolMessage(asked, known);
  const call = iterations.callOf(id);
  if (!call) throw new TypeError(`a tool call ${id} was never recorded`);
  // Whole numbers that a double would round reach such a tool as texts.
  const keepsDigits = loop.tools.find((tool) => tool.name === name)?.extras?.keepsDigits === true;
  const args = parseArguments(call.arguments, keepsDigits);
  // LangChain takes arguments that look like a call for one, and unwraps them: so they are wrapped.
  const wrapped = { ...asked, args: { ...asked, args: args ?? {}, type: "tool_call" } };
  const make = async () => textOf(await makeCall(wrapped));
  const refusal = args && (await loop.approve(call, args)); // a call whose arguments cannot be read is not made at all
  const observation = refusal ? refuseCall(call, refusal) : await observeCall(loop, call, make);
  await iterations.recordResult(observation);
  const { isError } = observation;
  await notify({ event: "observation", index: call.index, action: call.name, isError }, call.index + 1);
  return toToolMessage(asked, observation);
}

const toToolMessage = ({ id = "", name }: Pick<LangChainCall, "id" | "name">, { output, isError }: Outcome) =>
  new ToolMessage({ content: output, tool_call_id: id, name, status: isError ? "error" : "success" });

type Outcome = { output: string; isError: boolean };

/** A recorded response whose calls have all been observed, as messages of the conversation. */
const toMessages = ({ turn, observed }: WholeTurn): Message[] => [
  { role: "assistant", content: turn.thought, toolCalls: turn.calls.map(toLangChainCall).map(toGatewayCall) },
  ...observed.map(({ call, observation }) => {
    return { role: "tool" as const, content: observation.output, toolCallId: call.id };
  }),
];

/**
 * The conversation with what was recorded before behind the run's input. LangChain does not get that: it goes through all messages
 * that it has at each of its steps.
 */
const insertRecalled = (messages: readonly Message[], recalled: readonly Message[]): Message[] =>
  messages.toSpliced(messages.findLastIndex(({ role }) => role === "user") + 1, 0, ...recalled);

const messageOf = { system: SystemMessage, user: HumanMessage, assistant: AIMessage };

const callsOf = (turn: Turn) => (turn.kind === "intention" ? turn.calls : []);

/** A recorded response as LangChain keeps it. */
const toAiMessage = (turn: Turn) =>
  new AIMessage({ content: turn.thought, tool_calls: callsOf(turn).map(toLangChainCall) });

/** The text that a tool has returned. */
const textOf = (made: unknown) => (ToolMessage.isInstance(made) ? made.text : "");
