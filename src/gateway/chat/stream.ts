import { defined } from "../../defined.ts";
import { AppError } from "../../errors.ts";
import type { GatewayDeps } from "../deps.ts";
import { markReasoning } from "../messages.ts";
import type { Call } from "../money/account.ts";
import type { CallContext, CompletionRequest, StreamPart } from "../providers/provider.ts";
import { type Share, withFallbacks } from "../resilience/fallback.ts";
import { askModel } from "../resilience/retry.ts";
import type { AttemptPermit } from "../resilience/target.ts";
import { fromAbort, providerFault, streamCut } from "../resilience/transport-errors.ts";
import { readably, settleChat, toAsked, toCompletionRequest, toContent } from "./complete.ts";
import { makeFenceFilter } from "./json-fence.ts";
import type { ChatOutcome } from "./outcome.ts";
import { type PlannedChat, reportFallback } from "./plan.ts";
import { findMismatch } from "./response-format.ts";
import type { Routing } from "./route-model.ts";
import { type ContentDelta, makeStreamedResponse, type StreamedResponse } from "./streamed-response.ts";

/**
 * When a model has said nothing for this long, an empty batch makes the host send its head, so that heartbeats can keep the
 * connection open. Until then a failure is still an ordinary error, with its own status.
 */
const SILENCE_MS = 5_000;

/** Stands for the error of a reader that left, which is made only then: an error costs more than a token. */
const readerLeft = Symbol("reader left");

export type StreamEnd = Omit<ChatOutcome, "text" | "reasoning"> & { type: "end" };
export type StreamEvent = ContentDelta | StreamEnd;

/**
 * Answers a chat part by part: batches of deltas, one for what arrived together, then one `end` with usage and cost.
 * Retries until the first part, also with the plan's fallbacks, never after it. However it ends, also when the consumer
 * leaves the loop, the upstream request is ended and its record settled. Throws as `complete` does, also in the middle.
 */
export async function* streamChat(deps: GatewayDeps, chat: PlannedChat): AsyncGenerator<StreamEvent[]> {
  const { caller, plan } = chat;
  const upstream = makeUpstream(caller.signal);
  const response = makeStreamedResponse();
  const opening = withFallbacks(deps, plan, (share) => openStream(deps, chat, share, upstream.signal));
  let stream: OpenStream | undefined;
  let failure: unknown = readerLeft;
  try {
    if (await isSilentFor(SILENCE_MS, opening)) yield [];
    stream = await opening;
    const filter = stream.request.responseFormat && makeFenceFilter();
    for (let parts: StreamPart[] | undefined = stream.first; parts !== undefined; parts = await stream.rest()) {
      if (caller.signal.aborted) throw fromAbort(caller.signal);
      const deltas = response.take(filter ? filter(parts) : parts, stream.routing.model.provider);
      if (response.finish() === undefined) {
        if (deltas.length > 0) yield deltas;
        continue;
      }
      const { responseFormat } = stream.request;
      if (responseFormat !== undefined) {
        if (deltas.length > 0) yield deltas.splice(0);
        const answer = { text: response.content().text, finishReason: response.finish()?.finishReason };
        const mismatch = await findMismatch(deps.schemaChecks, caller, responseFormat, answer);
        if (mismatch !== undefined) throw mismatch;
      }
      failure = undefined;
      yield [...deltas, settleWhole(stream, response)];
      return;
    }
    throw streamCut();
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    upstream.release(failure === undefined);
    stream ??= await opening.catch(() => undefined); // one that did not open has settled its own record
    await stream?.leave();
    if (failure === readerLeft) failure = new AppError("client_closed", "The reader left the stream.");
    stream?.permit.note(() => factsOf(response));
    stream?.permit.leave(failure);
    if (stream !== undefined && failure !== undefined) {
      stream.call.settle({ ...servedOf(stream, response), error: failure });
    }
  }
}

/** The served part of a stream, which the provider bills whether the stream ended or broke off. */
function servedOf({ request: { messages }, routing: { model } }: OpenStream, response: StreamedResponse) {
  const estimate = () => response.measure({ messages, model });
  return { usage: response.usage(), estimate, content: () => toContent(messages, response.content().text) };
}

/** Settles a stream that came to its end, and reports it. */
function settleWhole(stream: OpenStream, response: StreamedResponse): StreamEnd {
  const { finishReason = "stop", providerFinishReason } = response.finish() ?? {};
  const end = { ...servedOf(stream, response), finishReason };
  const { toolCalls } = response.content();
  const given = response.parts();
  const parts = given && markReasoning(given, stream.routing.model.provider);
  return {
    type: "end",
    toolCalls,
    ...defined({ parts, providerFinishReason }),
    ...settleChat(stream.call, stream.routing, end),
  };
}

/** What a stream has reported of itself. */
export function factsOf(response: StreamedResponse) {
  const { finishReason, providerFinishReason } = response.finish() ?? {};
  return { ...response.about(), usage: response.usage(), finishReason, providerFinishReason };
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
  permit: AttemptPermit;
  call: Call;
  routing: Routing;
  request: CompletionRequest;
};

/** Opens the stream of one model and reads its first parts, with retries. When it does not open, its record is settled here. */
async function openStream(
  deps: GatewayDeps,
  { caller, request: chat }: PlannedChat,
  share: Share,
  signal: AbortSignal,
): Promise<OpenStream> {
  const { model, provider } = share.target;
  const request = toCompletionRequest(chat, model);
  const asked = { ...toAsked(caller, model, request), isStreamed: true, signal };
  const { call, result } = await askModel(deps, share, asked, (call) => {
    const capped = call.capped(request);
    const begin = async (readable: CompletionRequest, context: CallContext) => {
      const iterator = provider.stream(readable, context)[Symbol.asyncIterator]();
      const rest = async () => {
        const result = await iterator.next();
        return result.done ? undefined : result.value;
      };
      const first = await rest();
      if (first === undefined) throw providerFault("The provider sent an empty stream.");
      return { first, rest, leave: () => iterator.return?.() };
    };
    return async (context, permit) => ({
      ...(await readably(capped, (readable) => begin(readable, context))),
      permit,
    });
  });
  call.onFirstToken();
  reportFallback(caller, share.routing, chat);
  return { ...result, call, routing: share.routing, request };
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
