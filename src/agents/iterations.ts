import { AppError } from "../errors.ts";
import type { ChatOutcome } from "../gateway/chat/complete.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { GatewayCaller } from "../gateway/money/account.ts";
import type { Message } from "../gateway/providers/provider.ts";
import type { Logger } from "../logger.ts";
import type { AgentDefinition } from "../store/agent-store.ts";
import type { AuditCall, AuditContent } from "../store/audit-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { ModelTurn } from "./gateway-model.ts";
import type { Spending } from "./limits.ts";
import { RunStopped } from "./run-state.ts";
import { type AgentTool, callTool } from "./tools/tool.ts";
import type { Trail } from "./trail.ts";

/** Tool calls of one answer that are made; further ones are dropped from the conversation too. */
const MAX_CALLS = 16;
/** Longest text of an answer, and of a call's arguments, that is kept, in characters. */
const MAX_THOUGHT = 100_000;
const MAX_ARGUMENTS = 100_000;

/** What a run's followers are told of it: nothing that was said. */
export type RunStepEvent = { event: AuditContent["kind"]; index: number; action?: string; isError?: boolean };

export type IterationDeps = {
  runId: string;
  acceptedAt: Date;
  definition: AgentDefinition;
  caller: Caller;
  context: Readonly<Record<string, unknown>> | undefined;
  tools: readonly AgentTool[];
  gateway: Pick<Gateway, "complete">;
  trail: Trail;
  spending: Spending;
  /** Aborts when the run has to end, for whatever reason. */
  signal: AbortSignal;
  tell(event: RunStepEvent): Promise<void>;
  logger: Logger;
};

/** The iterations of one run. What an earlier worker recorded is handed out again first, and neither asked nor paid anew. */
export type Iterations = {
  recall(): ModelTurn | undefined;
  think(messages: Message[]): Promise<ModelTurn>;
  act(callId: string): Promise<string>;
  /** Answers of the model by now. */
  count(): number;
  /** The best that there is to answer with: what the model said last, else what it observed last. */
  bestAnswer(): string;
  /** Whether the model has answered without a tool call. */
  hasAnswered(): boolean;
};

type Turn = Extract<AuditContent, { kind: "intention" | "answer" }>;
type Observed = Extract<AuditContent, { kind: "observation" }>;

export function makeIterations(deps: IterationDeps): Iterations {
  const { trail, spending, signal, definition } = deps;
  const recorded = trail.recorded.filter((content): content is Turn => isTurn(content));
  const observed = new Map<string, Observed>();
  const calls = new Map<string, AuditCall & { index: number }>();
  let best = "";
  let lastObserved = "";
  let isAnswered = false;
  let count = 0;

  const take = (turn: Turn): ModelTurn => {
    count += 1;
    if (turn.thought.trim() !== "") best = turn.thought;
    isAnswered = turn.kind === "answer";
    const asked = turn.kind === "intention" ? turn.calls : [];
    for (const call of asked) calls.set(call.id, { ...call, index: count });
    return { text: turn.thought, calls: asked };
  };
  const takeObservation = (observation: Observed) => {
    observed.set(observation.callId, observation);
    if (!observation.isError) lastObserved = observation.output;
  };
  for (const content of trail.recorded) {
    if ("spent" in content) spending.recall(content.spent);
    if (content.kind === "observation") takeObservation(content);
  }
  return {
    recall() {
      const next = recorded[count];
      return next && take(next);
    },
    async think(messages) {
      signal.throwIfAborted();
      if (count >= definition.maxIterations) throw new RunStopped("max_iterations");
      const turn = await askModel(deps, messages, count + 1);
      await trail.append(turn);
      const taken = take(turn);
      const action = taken.calls.map(({ name }) => name).join(", ");
      await deps.tell({ event: turn.kind, index: count, ...(action === "" ? {} : { action }) });
      return taken;
    },
    async act(callId) {
      const known = observed.get(callId);
      if (known) return known.output;
      const call = calls.get(callId);
      if (!call) throw new TypeError(`a tool call ${callId} was never recorded`);
      const startedAt = new Date().toISOString();
      const meter = spending.meter();
      const { caller, context, acceptedAt, tools, logger } = deps;
      const { idempotencyKey } = call;
      const toolContext = { caller, context, idempotencyKey, acceptedAt, signal, limit: meter.limit, spend: meter.add };
      const outcome = await callTool(tools, call, toolContext, logger);
      const observation: Observed = { kind: "observation", callId, ...outcome, startedAt, spent: meter.spent() };
      await trail.append(observation);
      takeObservation(observation);
      const { isError } = outcome;
      await deps.tell({ event: "observation", index: call.index, action: call.name, isError });
      return outcome.output;
    },
    count: () => count,
    bestAnswer: () => (best === "" ? lastObserved : best),
    hasAnswered: () => isAnswered,
  };
}

const isTurn = ({ kind }: AuditContent) => kind === "intention" || kind === "answer";

/** Asks the model for one answer, and gives it the form in which it is recorded. */
async function askModel(deps: IterationDeps, messages: Message[], index: number): Promise<Turn> {
  const { definition, caller, spending, signal, runId, tools } = deps;
  const left = spending.tokensLeft(definition.model, messages);
  const meter = spending.meter();
  const { tenantId, keyId } = caller;
  const gatewayCaller: GatewayCaller = { tenantId, keyId, surface: "agents", signal, limit: meter.limit };
  const outcome = await complete(deps, gatewayCaller, {
    model: definition.model,
    messages,
    ...(definition.temperature === undefined ? {} : { temperature: definition.temperature }),
    ...toMaxTokens(left, definition.maxTokens),
    ...(tools.length === 0
      ? {}
      : { tools: tools.map(({ name, description, parameters }) => ({ name, description, parameters })) }),
    // A run's answers are its own: one that is repeated is one that its trail would not explain.
    options: { cache: false },
  });
  const thought = (outcome.text || (outcome.reasoning ?? "")).slice(0, MAX_THOUGHT).toWellFormed();
  const { model, logId } = outcome;
  const common = { thought, model, logId, spent: meter.spent() };
  if (outcome.toolCalls.length === 0) return { kind: "answer", ...common };
  return {
    kind: "intention",
    ...common,
    // Ids of our own: providers have been seen to give one twice in a conversation.
    calls: outcome.toolCalls.slice(0, MAX_CALLS).map((call, place) => ({
      id: `call_${index}_${place + 1}`,
      name: call.name.slice(0, 100).toWellFormed(),
      arguments: call.arguments.slice(0, MAX_ARGUMENTS).toWellFormed(),
      idempotencyKey: `${runId}-${index}-${place + 1}`,
    })),
  };
}

async function complete(
  { gateway, signal }: IterationDeps,
  caller: GatewayCaller,
  request: Parameters<Gateway["complete"]>[1],
): Promise<ChatOutcome> {
  try {
    return await gateway.complete(caller, request);
  } catch (error) {
    signal.throwIfAborted();
    // What is left of the tenant's month is a limit of the run too.
    if (error instanceof AppError && error.code === "budget_exhausted") throw new RunStopped("budget_exhausted");
    throw error;
  }
}

function toMaxTokens(left: number | undefined, own: number | undefined): { maxTokens?: number } {
  const least = Math.min(left ?? Number.POSITIVE_INFINITY, own ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(least) ? { maxTokens: least } : {};
}
