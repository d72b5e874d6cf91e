import { defined } from "../../defined.ts";
import { AppError } from "../../errors.ts";
import type { Logger } from "../../logger.ts";
import { isStoreFailure } from "../../store/store-errors.ts";
import { inSpan } from "../../tracing.ts";
import { parseArguments } from "../arguments.ts";
import { RunStopped } from "../run-state.ts";
import type { AgentTool, ToolContext, ToolOutput } from "./tool.ts";

/** Longest observation, in characters; a longer one is cut, and says so. */
const MAX_OBSERVATION = 20_000;
const SHOWN_ARGUMENTS = 500;

export type Observation = { output: string; isError: boolean; runId?: string };
export type AskedCall = { id?: string; name: string; arguments: string };

/**
 * Makes a tool call that a model asked for. The model observes its failures; only errors of the whole run are thrown.
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
    return toFailure(`There is no tool ${call.name.slice(0, 100)}. The tools: ${known}.`);
  }
  const input = parseArguments(call.arguments, tool.keepsDigits);
  if (input === undefined) {
    return toFailure(`The arguments are not a JSON object: ${call.arguments.slice(0, SHOWN_ARGUMENTS)}`);
  }
  context.signal.throwIfAborted();
  const own = new AbortController();
  const late = new AppError("timeout", `It did not answer within ${tool.timeoutMs / 1_000} s.`);
  const clock = setTimeout(() => own.abort(late), tool.timeoutMs);
  const signal = AbortSignal.any([context.signal, own.signal]);
  try {
    const attributes = defined({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": tool.name,
      "gen_ai.tool.type": "function",
      "gen_ai.tool.call.id": call.id,
      "gen_ai.conversation.id": context.conversationId,
    });
    const output = await inSpan(
      { name: `execute_tool ${tool.name}`, kind: "INTERNAL", attributes },
      () => Promise.race([tool.run(input, { ...context, signal }), abortOf(signal)]),
      (made) => ({ failure: typeof made !== "string" && made.isError === true ? "tool_error" : undefined }),
    );
    return toObservation(output);
  } catch (error) {
    context.signal.throwIfAborted();
    if (error instanceof RunStopped || isStoreFailure(error)) throw error;
    if (error instanceof AppError) return toFailure(`The tool failed: ${error.message}`);
    logger.error({ err: error, tool: tool.name }, "a tool threw unexpectedly");
    return toFailure("The tool failed.");
  } finally {
    clearTimeout(clock);
    own.abort(new AppError("timeout", "The tool call is over.")); // the tool's remaining work ends with it
  }
}

/** Rejects with the signal's reason as soon as it aborts: a tool may ignore the signal. */
function abortOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

function toObservation(made: ToolOutput): Observation {
  const { output, isError = false, runId } = typeof made === "string" ? { output: made } : { ...made };
  return defined({ output: cutOutput(output), isError, runId });
}

const toFailure = (output: string) => toObservation({ output, isError: true });

/** Text of a bounded length, without halves of characters; its end says how much was cut. */
function cutOutput(text: string): string {
  if (text.length <= MAX_OBSERVATION) return text.toWellFormed();
  return `${text.slice(0, MAX_OBSERVATION).toWellFormed()}\n[cut here: ${MAX_OBSERVATION} of ${text.length} characters]`;
}
