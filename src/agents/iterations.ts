import { defined } from "../defined.ts";
import { isBudgetExhausted } from "../errors.ts";
import type { ChatOutcome } from "../gateway/chat/outcome.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Message, ToolCall } from "../gateway/messages.ts";
import type { GatewayCaller } from "../gateway/money/account.ts";
import type { Logger } from "../logger.ts";
import type { AgentRunRecord } from "../store/agent-run-store.ts";
import type { AuditCall, AuditContent } from "../store/audit-store.ts";
import type { AuditLog } from "./audit.ts";
import { makeReasoning, toRecordedParts } from "./reasoning.ts";
import { originOf, RunStopped } from "./run-state.ts";
import type { RunUsage } from "./run-usage.ts";
import { callTool } from "./tools/call-tool.ts";
import type { AgentTool } from "./tools/tool.ts";

/** Tool calls of one answer that are made; further ones are dropped from the conversation too. */
const MAX_CALLS = 16;
/** Longest text of an answer, and of a call's arguments, that is kept, in characters. */
const MAX_THOUGHT = 100_000;
const MAX_ARGUMENTS = 100_000;
/** Stands for arguments that did not come: no JSON, so that the call is not made. */
const CUT = "(cut)";

/** What followers of a run receive of it: nothing that was said. */
export type RunStepEvent = { event: AuditContent["kind"]; index: number; action?: string; isError?: boolean };

export type IterationDeps = {
  run: AgentRunRecord;
  tools: readonly AgentTool[];
  gateway: Pick<Gateway, "complete">;
  auditLog: AuditLog;
  usage: RunUsage;
  /** Aborts when the run has to end, for whatever reason. */
  signal: AbortSignal;
  /** `known`: how many iterations there are, the next one included. */
  notify(event: RunStepEvent, known: number): Promise<void>;
  logger: Logger;
};

/** A response of the model. */
export type ModelTurn = { text: string; calls: ToolCall[] };

type Turn = Extract<AuditContent, { kind: "intention" | "answer" }>;
type Observed = Extract<AuditContent, { kind: "observation" }>;

export type Iterations = ReturnType<typeof makeIterations>;

/** The iterations of one run. Recorded responses of an earlier worker come first, and are neither asked nor paid again. */
export function makeIterations(deps: IterationDeps) {
  const { run, auditLog, usage, signal } = deps;
  const recorded = auditLog.recorded.filter(isTurn);
  const observed = new Map<string, Observed>();
  const calls = new Map<string, AuditCall & { index: number }>();
  const reasoning = makeReasoning();
  let best = "";
  let lastObserved = "";
  let count = 0;
  let cutBy: Extract<Turn, { kind: "answer" }>["cut"];

  const take = (turn: Turn): ModelTurn => {
    count += 1;
    cutBy = turn.kind === "answer" ? turn.cut : undefined;
    if (turn.thought.trim() !== "") best = turn.thought;
    const asked = turn.kind === "intention" ? turn.calls : [];
    for (const call of asked) calls.set(call.id, { ...call, index: count });
    const [first] = asked;
    if (first && turn.kind === "intention" && turn.parts !== undefined) reasoning.take(turn.parts, first.id);
    return { text: turn.thought, calls: asked };
  };
  const takeObservation = (observation: Observed) => {
    observed.set(observation.callId, observation);
    if (!observation.isError) lastObserved = observation.output;
  };
  for (const content of auditLog.recorded) {
    if ("spent" in content) usage.recall(content.spent);
    if (content.kind === "observation") takeObservation(content);
  }
  return {
    recall(): ModelTurn | undefined {
      const next = recorded[count];
      return next && take(next);
    },
    async think(messages: Message[]): Promise<ModelTurn> {
      signal.throwIfAborted();
      if (count >= run.definition.maxIterations) throw new RunStopped("max_iterations");
      const turn = await askModel(deps, messages.map(reasoning.addTo), {
        index: count + 1,
        isKnown: (id) => calls.has(id),
      });
      await auditLog.append(turn);
      const taken = take(turn);
      const action = taken.calls.map(({ name }) => name).join(", ");
      const event = { event: turn.kind, index: count, ...(action === "" ? {} : { action }) };
      await deps.notify(event, taken.calls.length > 0 ? count + 1 : count);
      return taken;
    },
    async act(callId: string): Promise<string> {
      const known = observed.get(callId);
      if (known) return known.output;
      const call = calls.get(callId);
      if (!call) throw new TypeError(`a tool call ${callId} was never recorded`);
      const startedAt = new Date().toISOString();
      const used = usage.ofStep();
      const outcome = await callTool(deps.tools, call, toToolContext(deps, call, used), deps.logger);
      const observation: Observed = { kind: "observation", callId, ...outcome, startedAt, spent: used.spent() };
      await auditLog.append(observation);
      takeObservation(observation);
      const { isError } = outcome;
      await deps.notify({ event: "observation", index: call.index, action: call.name, isError }, call.index + 1);
      return outcome.output;
    },
    /** Responses of the model so far. */
    count: () => count,
    /** Why the last answer is not whole; undefined when it is. */
    cutBy: () => cutBy,
    /** The best output so far: what the model said last, else what it observed last. */
    bestAnswer: () => (best === "" ? lastObserved : best),
  };
}

const toToolContext = (
  { run, signal }: IterationDeps,
  { idempotencyKey }: AuditCall,
  { limit, add: spend }: ReturnType<RunUsage["ofStep"]>,
) => ({ idempotencyKey, signal, limit, spend, conversationId: run.sessionId });

const isTurn = (content: AuditContent) => content.kind === "intention" || content.kind === "answer";

/** Calls the model once, and gives its response the form in which it is recorded. */
async function askModel(
  deps: IterationDeps,
  messages: Message[],
  { index, isKnown }: { index: number; isKnown(callId: string): boolean },
): Promise<Turn> {
  const { run, usage, signal, tools } = deps;
  const { definition, tenantId, caller, _id: runId } = run;
  const { model: name, temperature, maxTokens = Number.POSITIVE_INFINITY } = definition;
  const most = Math.min(await usage.tokensLeft(name, messages), maxTokens);
  const used = usage.ofStep();
  const gatewayCaller: GatewayCaller = {
    tenantId,
    keyId: caller.keyId,
    surface: "agents",
    signal,
    limit: used.limit,
    origin: originOf(run),
    conversationId: run.sessionId,
  };
  const outcome = await complete(deps, gatewayCaller, {
    model: name,
    messages,
    ...defined({
      temperature,
      maxTokens: Number.isFinite(most) ? most : undefined,
      tools: tools.length === 0 ? undefined : tools.map(toSpec),
    }),
    promptCacheKey: runId,
    // A response from the cache is one that the run's audit log would not explain.
    options: { cache: false },
  });
  const thought = (outcome.text || (outcome.reasoning ?? "")).slice(0, MAX_THOUGHT).toWellFormed();
  const { model, logId, finishReason } = outcome;
  const isCut = finishReason === "length" || finishReason === "content_filter";
  const common = { thought, model, logId, spent: used.spent() };
  if (outcome.toolCalls.length === 0) return { kind: "answer", ...common, ...(isCut ? { cut: finishReason } : {}) };
  const { areIdsKept, ...reasoned } = toRecordedParts(outcome, { isKnown, most: MAX_CALLS });
  return {
    kind: "intention",
    ...common,
    calls: outcome.toolCalls.slice(0, MAX_CALLS).map((call, place) => ({
      // Ids of our own, where they may be: providers have been seen to give one twice in a conversation.
      id: areIdsKept ? call.id : `call_${index}_${place + 1}`,
      name: call.name.slice(0, 100).toWellFormed(),
      // No arguments of a call that was cut are not the same as none.
      arguments: isCut && call.arguments === "" ? CUT : call.arguments.slice(0, MAX_ARGUMENTS).toWellFormed(),
      idempotencyKey: `${runId}-${index}-${place + 1}`,
    })),
    ...reasoned,
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
    if (isBudgetExhausted(error)) throw new RunStopped("budget_exhausted");
    throw error;
  }
}

const toSpec = ({ name, description, parameters }: AgentTool) => ({ name, description, parameters });
