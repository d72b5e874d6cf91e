import { AppError } from "../errors.ts";
import { beginCall, type Call, type GatewayCaller } from "./account.ts";
import type { Breaker } from "./breaker.ts";
import type { ChatRequest } from "./chat-request.ts";
import { type ChatOutcome, estimateUsage, keptContent, toCompletionRequest, toRoutingView } from "./complete.ts";
import { type GatewayDeps, guarded, isUsable, providerOf, toContext } from "./deps.ts";
import type { CompletionRequest, FinishReason, Provider, StreamPart, ToolCall, Usage } from "./providers/provider.ts";
import { fromAbort } from "./providers/transport-errors.ts";
import { withRetries } from "./retry.ts";
import { routeModel } from "./route-model.ts";

/**
 * When a model has said nothing for so long, an empty batch tells the host to send its head, so that heartbeats can keep
 * the connection open. Until then a failure is still an ordinary error, with its own status.
 */
const SILENCE_MS = 5_000;

/** Stands for the error of a reader who left, which is made only then: an error costs more than a token. */
const readerLeft = Symbol("reader left");

export type StreamEnd = Omit<ChatOutcome, "text" | "reasoning"> & { type: "end" };
export type StreamEvent = Exclude<StreamPart, { type: "usage" | "end" }> | StreamEnd;

/**
 * Answers a chat part by part: batches of deltas, one for what arrived together, then one `end` with usage and cost.
 * Tries again until the first part, never after it. However it ends, also when the consumer leaves the loop, the upstream
 * request is ended and its record settled. Throws as `complete` does; before the first batch, or in the middle.
 */
export async function* streamChat(
  deps: GatewayDeps,
  caller: GatewayCaller,
  request: ChatRequest,
): AsyncGenerator<StreamEvent[]> {
  const routing = routeModel(deps.catalogue, request, isUsable(deps));
  const { provider, breaker } = providerOf(deps, routing.model);
  const wireRequest = toCompletionRequest(request, routing);
  const call = beginCall(deps.ledger, caller, { kind: "chat", routing, isStreamed: true });
  const answer = makeAnswer();
  const upstream = makeUpstream(caller.signal);
  let opened: OpenStream | undefined;
  let failure: unknown = readerLeft;
  try {
    const opening = openStream({ provider, breaker, request: wireRequest, signal: upstream.signal, call });
    if (await isSilentFor(SILENCE_MS, opening)) yield [];
    opened = await opening;
    call.onFirstToken();
    for (let parts: StreamPart[] | undefined = opened.first; parts !== undefined; parts = await opened.rest()) {
      if (caller.signal.aborted) throw fromAbort(caller.signal);
      const deltas = answer.take(parts);
      const finishReason = answer.finishReason();
      if (finishReason === undefined) {
        if (deltas.length > 0) yield deltas;
        continue;
      }
      failure = undefined;
      const { text, toolCalls } = answer.content();
      const settlement = call.settle({
        usage: answer.usage(),
        estimate: () => estimateUsage(wireRequest.messages, text, toolCalls),
        finishReason,
        ...keptContent(deps, wireRequest.messages, text),
      });
      yield [
        ...deltas,
        {
          type: "end",
          logId: call.logId,
          toolCalls,
          finishReason,
          model: routing.model.id,
          provider: routing.model.provider,
          cached: false,
          routing: toRoutingView(routing),
          ...settlement,
        },
      ];
      return;
    }
    throw new AppError("provider_failed", "The provider's stream ended in the middle of the answer.", {
      details: { code: "stream_cut" },
      retryable: true,
    });
  } catch (error) {
    failure = error;
    if (opened !== undefined) breaker.leave(error);
    throw error;
  } finally {
    upstream.release(failure === undefined);
    await opened?.leave();
    if (failure !== undefined) {
      const error = failure === readerLeft ? new AppError("client_closed", "The reader left the stream.") : failure;
      const { text, toolCalls } = answer.content();
      // What was served, or asked for by a caller who left, is charged by the provider; a call that failed before is not.
      const isCharged = answer.hasBegun() || (call.wasTried() && isCallersEnd(error, caller.signal));
      const estimate = () =>
        isCharged ? estimateUsage(wireRequest.messages, text, toolCalls) : { inputTokens: 0, outputTokens: 0 };
      call.settle({
        usage: answer.usage(),
        estimate,
        error,
        ...keptContent(deps, wireRequest.messages, text),
      });
    }
  }
}

function isCallersEnd(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted || (error instanceof AppError && error.code === "client_closed");
}

/** A signal that aborts with the caller's, and when the stream is released before it is complete. */
function makeUpstream(signal: AbortSignal): { signal: AbortSignal; release(isComplete: boolean): void } {
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return {
    signal: controller.signal,
    release: (isComplete) => {
      signal.removeEventListener("abort", onAbort);
      if (!isComplete) controller.abort();
    },
  };
}

type OpenStream = {
  first: StreamPart[];
  rest(): Promise<StreamPart[] | undefined>;
  leave(): Promise<unknown> | undefined;
};

/** Opens the provider's stream and reads until its first parts are there; up to then it is tried again. */
function openStream(input: {
  provider: Provider;
  breaker: Breaker;
  request: CompletionRequest;
  signal: AbortSignal;
  call: Call;
}): Promise<OpenStream> {
  const { provider, breaker, request, signal, call } = input;
  const attempt = async (): Promise<OpenStream> => {
    const iterator = provider.stream(request, toContext(signal))[Symbol.asyncIterator]();
    const next = async () => {
      const result = await iterator.next();
      return result.done ? undefined : result.value;
    };
    const first = await guarded(breaker, next);
    if (first === undefined)
      throw new AppError("provider_failed", "The provider sent an empty stream.", { retryable: true });
    return { first, rest: next, leave: () => iterator.return?.() };
  };
  return withRetries(attempt, { signal, onTry: call.onTry });
}

/** Whether `opening` is still under way after `ms`. */
function isSilentFor(ms: number, opening: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms, true);
    const settled = () => {
      clearTimeout(timer);
      resolve(false);
    };
    opening.then(settled, settled);
  });
}

/** Gathers what a stream has said so far. */
function makeAnswer() {
  let text = "";
  let hasBegun = false;
  let usage: Usage | undefined;
  let finishReason: FinishReason | undefined;
  const calls: ToolCall[] = [];
  const takeCall = (part: Extract<StreamPart, { type: "tool-call-delta" }>) => {
    const known = calls[part.index];
    if (known === undefined) {
      calls[part.index] = {
        id: part.id ?? `call_${part.index}`,
        name: part.name ?? "",
        arguments: part.argumentsDelta,
      };
    } else {
      known.name ||= part.name ?? "";
      known.arguments += part.argumentsDelta;
    }
  };
  return {
    /** Takes parts in and returns those that are deltas. */
    take(parts: readonly StreamPart[]): Exclude<StreamEvent, StreamEnd>[] {
      const deltas: Exclude<StreamEvent, StreamEnd>[] = [];
      for (const part of parts) {
        if (part.type === "usage") usage = part.usage;
        else if (part.type === "end") finishReason = part.finishReason;
        else {
          hasBegun = true;
          if (part.type === "text-delta") text += part.text;
          else if (part.type === "tool-call-delta") takeCall(part);
          deltas.push(part);
        }
      }
      return deltas;
    },
    hasBegun: () => hasBegun,
    usage: () => usage,
    finishReason: () => finishReason,
    content: () => ({ text, toolCalls: calls.filter((call) => call !== undefined) }),
  };
}
