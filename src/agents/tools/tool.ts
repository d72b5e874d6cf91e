import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { AppError } from "../../errors.ts";
import type { CallLimit } from "../../gateway/money/account.ts";
import { type JsonSchema, toJsonSchema } from "../../json-schema.ts";
import type { Logger } from "../../logger.ts";
import type { AuditSpent } from "../../store/audit-store.ts";
import { isStoreUnavailable } from "../../store/connect.ts";
import type { Caller } from "../../tenancy/roles.ts";
import { inSpan } from "../../tracing.ts";
import { RunStopped } from "../run-state.ts";

/** Longest observation, in characters: what is longer is cut, and said to be. */
export const MAX_OBSERVATION = 20_000;
const SHOWN_ARGUMENTS = 500;

/** What a tool call is made with, besides its arguments. */
export type ToolContext = {
  caller: Caller;
  /** Counts the model calls of the tool to the run. */
  limit: CallLimit;
  /** Counts what the tool used in other ways. */
  spend(spent: AuditSpent): void;
  /** The same at every try of this call. */
  idempotencyKey: string;
  /** When the call's run was accepted: what is made for the call is dated so, the same at every try. */
  acceptedAt: Date;
  /** What the run's caller gave along. */
  context: Readonly<Record<string, unknown>> | undefined;
  /** Aborts when the run is cancelled or out of time, and when the tool is. */
  signal: AbortSignal;
};

export type ToolOutput = string | { output: string; isError?: boolean; runId?: string };

/** A tool as a run has it. */
export type AgentTool = {
  name: string;
  description: string;
  /** JSON Schema of the arguments, for the model. */
  parameters: JsonSchema;
  /** Longest time of one call, in ms. */
  timeoutMs: number;
  /** @throws AppError what went wrong, in words fit for the model. */
  run(input: unknown, context: ToolContext): Promise<ToolOutput>;
};

/** A tool whose arguments are checked by a schema before it is run. */
export function defineTool<S extends z.ZodType>(tool: {
  name: string;
  description: string;
  input: S;
  timeoutMs: number;
  run(input: z.output<S>, context: ToolContext): Promise<ToolOutput> | ToolOutput;
}): AgentTool {
  const { input: schema, run, ...rest } = tool;
  return {
    ...rest,
    parameters: toJsonSchema(schema, "input"),
    async run(input, context) {
      const parsed = schema.safeParse(input);
      if (parsed.success) return run(parsed.data, context);
      throw new AppError("invalid_request", `The arguments do not fit: ${z.prettifyError(parsed.error)}`);
    },
  };
}

export type Observation = { output: string; isError: boolean; runId?: string };
export type AskedCall = { name: string; arguments: string };

/**
 * Makes a tool call that a model asked for. Whatever goes wrong in it is what the model observes; only what concerns the
 * whole run is thrown.
 * @throws the signal's reason; RunStopped; the driver's error when the store is away.
 */
export async function callTool(
  tools: readonly AgentTool[],
  call: AskedCall,
  context: ToolContext,
  logger: Logger,
): Promise<Observation> {
  const tool = tools.find(({ name }) => name === call.name);
  if (!tool) {
    const known = tools.map(({ name }) => name).join(", ") || "none";
    return toObservation({
      output: `There is no tool ${call.name.slice(0, 100)}. The tools: ${known}.`,
      isError: true,
    });
  }
  const input = parseArguments(call.arguments);
  if (input === undefined) {
    const shown = call.arguments.slice(0, SHOWN_ARGUMENTS);
    return toObservation({ output: `The arguments are not a JSON object: ${shown}`, isError: true });
  }
  const own = new AbortController();
  const signal = AbortSignal.any([context.signal, own.signal]);
  try {
    const attributes = { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool.name };
    const output = await inSpan({ name: `execute_tool ${tool.name}`, kind: "INTERNAL", attributes }, () =>
      withinTime(tool, signal, () => tool.run(input, { ...context, signal })),
    );
    return toObservation(output);
  } catch (error) {
    context.signal.throwIfAborted();
    if (error instanceof RunStopped || isStoreUnavailable(error)) throw error;
    if (error instanceof AppError) return toObservation({ output: `The tool failed: ${error.message}`, isError: true });
    logger.error({ err: error, tool: tool.name }, "a tool threw unexpectedly");
    return toObservation({ output: "The tool failed.", isError: true });
  } finally {
    own.abort(new AppError("timeout", "The tool call is over.")); // whatever the tool still does ends with it
  }
}

/** What `work` gives, or an error as soon as its time is over or the signal aborts, also when it heeds neither. */
async function withinTime<T>({ timeoutMs }: AgentTool, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const over = new AbortController();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  const timeout = delay(timeoutMs, undefined, { signal: over.signal }).then(() => {
    throw new AppError("timeout", `It did not answer within ${timeoutMs / 1_000} s.`);
  });
  timeout.catch(() => undefined); // rejects too when it is called off
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    signal.throwIfAborted();
    return await Promise.race([work(), timeout, aborted.promise]);
  } finally {
    over.abort();
    signal.removeEventListener("abort", onAbort);
  }
}

function parseArguments(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text === "" ? "{}" : text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined; // the model is told
  }
}

function toObservation(made: ToolOutput): Observation {
  const { output, isError = false, runId } = typeof made === "string" ? { output: made } : { ...made };
  return { output: cutOutput(output), isError, ...(runId === undefined ? {} : { runId }) };
}

/** Text of a bounded length, without halves of characters; what was cut is told at its end. */
export function cutOutput(text: string): string {
  if (text.length <= MAX_OBSERVATION) return text.toWellFormed();
  return `${text.slice(0, MAX_OBSERVATION).toWellFormed()}\n[cut here: ${MAX_OBSERVATION} of ${text.length} characters]`;
}
