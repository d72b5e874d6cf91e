import type { StructuredTool } from "@langchain/core/tools";
import { ToolInvocationError } from "langchain";
import { defined } from "../lib/defined.ts";
import { AppError } from "../lib/errors.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import type { Logger } from "../observe/logger.ts";
import { inSpan } from "../observe/tracing.ts";
import type { AgentRunRecord } from "../store/agent-run-store.ts";
import type { AuditCall } from "../store/audit-store.ts";
import { isStoreFailure } from "../store/store-errors.ts";
import { parseArguments } from "./arguments.ts";
import type { Observed } from "./iterations.ts";
import { toAudited } from "./passages.ts";
import { isPause, RunStopped } from "./run-state.ts";
import type { RunUsage } from "./run-usage.ts";
import type { ToolContext, ToolNotes } from "./tools/tool.ts";

/** Longest observation, in characters; a longer one is cut, and says so. */
const MAX_OBSERVATION = 20_000;
const SHOWN_ARGUMENTS = 500;

/** What tool calls of a run are made and observed with. */
export type ObserveDeps = {
  run: Pick<AgentRunRecord, "sessionId">;
  tools: readonly StructuredTool[];
  /** The calls under way, by their ids. */
  calls: Map<string, ToolContext>;
  usage: RunUsage;
  /** Aborts when the run has to end, for whatever reason. */
  signal: AbortSignal;
  logger: Logger;
  /** What a tool has given, as the tenant's guards let it go on. @throws AppError `compliance_blocked`, `unavailable`. */
  guardOutput(output: string): Promise<string>;
};

/**
 * The observation of a tool call, for which `make` has LangChain run the tool. The model observes its failures; only errors of
 * the whole run are thrown. `index`: the place of the answer that asked for the call.
 * @throws the signal's reason; RunStopped; the driver's error when the store is unavailable.
 */
export async function observeCall(
  deps: ObserveDeps,
  call: AuditCall & { index: number },
  make: () => Promise<string>,
): Promise<Observed> {
  const startedAt = new Date().toISOString();
  const used = deps.usage.ofStep();
  const notes: ToolNotes = {};
  const outcome = await tryCall(deps, call, async (signal) => {
    deps.calls.set(call.id, {
      idempotencyKey: call.idempotencyKey,
      limit: used.limit,
      spend: used.add,
      budgets: () => deps.usage.budgetsOf(call.index),
      note: (more) => void Object.assign(notes, more),
      signal,
    });
    const output = await make();
    return { isError: false, ...notes, output };
  }).finally(() => deps.calls.delete(call.id));
  const { jobId } = notes; // of a job that has failed too
  return { kind: "observation", callId: call.id, ...outcome, ...defined({ jobId }), startedAt, spent: used.spent() };
}

/** The observation of a call that was not to be made. */
export function refuseCall({ id: callId }: AuditCall, { output }: { output: string }): Observed {
  const startedAt = new Date().toISOString();
  return { kind: "observation", callId, output: cutOutput(output), isError: true, startedAt, spent: noneSpent };
}

const noneSpent = { tokens: 0, outputTokens: 0, costUsd: 0 };

type Outcome = Pick<Observed, "output" | "isError" | "runId" | "citations">;

async function tryCall(
  deps: ObserveDeps,
  call: AuditCall,
  make: (signal: AbortSignal) => Promise<Outcome & Pick<ToolNotes, "found">>,
): Promise<Outcome> {
  const { tools, signal, logger } = deps;
  const tool = tools.find(({ name }) => name === call.name);
  if (!tool) {
    const known = tools.map(({ name }) => name).join(", ") || "none";
    return toFailure(`There is no tool ${call.name.slice(0, 100)}. The tools: ${known}.`);
  }
  if (parseArguments(call.arguments) === undefined) {
    return toFailure(`The arguments are not a JSON object: ${call.arguments.slice(0, SHOWN_ARGUMENTS)}`);
  }
  signal.throwIfAborted();
  const attributes = defined({
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": tool.name,
    "gen_ai.tool.type": "function",
    "gen_ai.tool.call.id": call.id,
    "gen_ai.conversation.id": deps.run.sessionId,
  });
  try {
    const {
      found,
      citations: cited,
      ...made
    } = await inSpan(
      { name: `execute_tool ${tool.name}`, kind: "INTERNAL", attributes },
      () => inTime(tool, signal, make).catch((error: unknown) => Promise.reject(toAppError(error))),
      ({ isError }) => ({ failure: isError ? "tool_error" : undefined }),
    );
    const output = cutOutput(await deps.guardOutput(made.output));
    const citations = found ? await toAudited(found, output, deps.guardOutput) : cited;
    return { ...made, output, ...(citations && { citations }) };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RunStopped || isPause(error) || isStoreFailure(error)) throw error;
    if (error instanceof AppError) return toFailure(`The tool failed: ${error.message}`);
    logger.error({ err: error, tool: tool.name }, "a tool threw unexpectedly");
    return toFailure("The tool failed.");
  }
}

/**
 * Runs a tool within its time. LangChain's own time limit is not used: the timer of each call would hold all that the run has in
 * memory until that time, also after the call.
 */
function inTime<T>(tool: StructuredTool, signal: AbortSignal, make: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { timeoutMs } = tool.extras ?? {};
  if (typeof timeoutMs !== "number") return make(signal);
  const late = new AbortController();
  return withTimeout(make(AbortSignal.any([signal, late.signal])), timeoutMs, () => {
    const error = new AppError("timeout", `It did not answer within ${timeoutMs / 1_000} s.`);
    late.abort(error);
    return error;
  });
}

/** The error of a call. LangChain's own, for arguments that do not fit, becomes an AppError. */
function toAppError(error: unknown): unknown {
  if (!(error instanceof ToolInvocationError)) return error;
  const problems = error.toolError.message.replace(/^.*\n\n/, "");
  return new AppError("invalid_request", `The arguments do not fit: ${problems}`, { cause: error });
}

const toFailure = (output: string): Outcome => ({ output: cutOutput(output), isError: true });

/** Text of a bounded length, without halves of characters; its end says how much was cut. */
function cutOutput(text: string): string {
  if (text.length <= MAX_OBSERVATION) return text.toWellFormed();
  return `${text.slice(0, MAX_OBSERVATION).toWellFormed()}\n[cut here: ${MAX_OBSERVATION} of ${text.length} characters]`;
}
