import { AppError } from "../../errors.ts";
import type { Logger } from "../../logger.ts";
import { isStoreFailure } from "../../store/store-errors.ts";
import { inSpan } from "../../tracing.ts";
import { parseArguments } from "../arguments.ts";
import { RunStopped } from "../run-state.ts";
import type { AgentTool, ToolContext, ToolOutput } from "./tool.ts";

/** Longest observation, in characters: what is longer is cut, and said to be. */
const MAX_OBSERVATION = 20_000;
const SHOWN_ARGUMENTS = 500;

export type Observation = { output: string; isError: boolean; runId?: string };
export type AskedCall = { name: string; arguments: string };

/**
 * Makes a tool call that a model asked for. The model observes the failures of the call; only errors that concern the whole
 * run are thrown.
 * @throws the signal's reason; RunStopped; the driver's error when the store is unavailable.
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
      withTimeout(tool, signal, () => tool.run(input, { ...context, signal })),
    );
    return toObservation(output);
  } catch (error) {
    context.signal.throwIfAborted();
    if (error instanceof RunStopped || isStoreFailure(error)) throw error;
    if (error instanceof AppError) return toObservation({ output: `The tool failed: ${error.message}`, isError: true });
    logger.error({ err: error, tool: tool.name }, "a tool threw unexpectedly");
    return toObservation({ output: "The tool failed.", isError: true });
  } finally {
    own.abort(new AppError("timeout", "The tool call is over.")); // the tool's remaining work ends with it
  }
}

/** The result of `work`, or an error as soon as its time is over or the signal aborts, even when it ignores both. */
async function withTimeout<T>({ timeoutMs }: AgentTool, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const late = AbortSignal.timeout(timeoutMs);
  const either = AbortSignal.any([signal, late]);
  const over = Promise.withResolvers<never>();
  const onAbort = () => {
    const timeout = new AppError("timeout", `It did not answer within ${timeoutMs / 1_000} s.`);
    over.reject(signal.aborted ? signal.reason : timeout);
  };
  either.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work(), over.promise]);
  } finally {
    either.removeEventListener("abort", onAbort);
  }
}

function toObservation(made: ToolOutput): Observation {
  const { output, isError = false, runId } = typeof made === "string" ? { output: made } : { ...made };
  return { output: cutOutput(output), isError, ...(runId === undefined ? {} : { runId }) };
}

/** Text of a bounded length, without halves of characters; its end says how much was cut. */
function cutOutput(text: string): string {
  if (text.length <= MAX_OBSERVATION) return text.toWellFormed();
  return `${text.slice(0, MAX_OBSERVATION).toWellFormed()}\n[cut here: ${MAX_OBSERVATION} of ${text.length} characters]`;
}
