import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import type { PolicyGuard } from "../../tenancy/guard-policies.ts";
import type { GatewayDeps } from "../deps.ts";
import { markReasoning } from "../messages.ts";
import type { StreamPart } from "../providers/provider.ts";
import { type ModelAttempt, withFallbacks } from "../resilience/retry.ts";
import type { AttemptPermit } from "../resilience/target.ts";
import { fromAbort, providerFault, streamCut } from "../resilience/transport-errors.ts";
import { type Attempt, attempt } from "./attempt.ts";
import { makePartsGuard } from "./guard-chat.ts";
import { makeFenceFilter } from "./json-fence.ts";
import type { ChatOutcome } from "./outcome.ts";
import type { PlannedChat } from "./plan.ts";
import { type ContentDelta, makeStreamedResponse, type StreamedResponse } from "./streamed-response.ts";

/**
 * When a model has said nothing for this long, an empty batch makes the host send its head, so that heartbeats can keep the
 * connection open. Until then a failure is still an ordinary error, with its own status.
 */
const SILENCE_MS = 5_000;

/** A stream that has said more waits for a place among its tenant's large ones before it says more, in characters. */
const LARGE_CHARACTERS = 256 << 10;

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
  const opening = withFallbacks(deps, plan, (modelAttempt) => openStream(deps, chat, modelAttempt, upstream.signal));
  let stream: OpenStream | undefined;
  let leaveLarge: (() => void) | undefined;
  let failure: unknown = readerLeft;
  try {
    if (await isSilentFor(SILENCE_MS, opening)) yield [];
    stream = await opening;
    const { first, rest } = stream.result;
    const filter = filterOf(stream.request.responseFormat !== undefined, caller.guard);
    for (let parts: StreamPart[] | undefined = first; parts !== undefined; parts = await rest()) {
      if (caller.signal.aborted) throw fromAbort(caller.signal);
      const deltas = response.take(filter ? await filter(parts) : parts, stream.model.provider);
      if (response.finish() === undefined) {
        if (deltas.length > 0) yield deltas;
        if (response.characters() > LARGE_CHARACTERS)
          leaveLarge ??= await deps.largeStreams.enter(caller.tenantId, caller.signal);
        continue;
      }
      if (filter && deltas.length > 0) yield deltas.splice(0); // the check of the whole text may take a while
      const end = await endStream(stream, response);
      failure = undefined;
      yield [...deltas, end];
      return;
    }
    throw streamCut();
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    leaveLarge?.();
    upstream.release(failure === undefined);
    stream ??= await opening.catch(() => undefined); // a stream that did not open has settled its own record
    await stream?.result.leave();
    if (failure === readerLeft) failure = new AppError("client_closed", "The reader left the stream.");
    stream?.result.permit.note(() => factsOf(response));
    stream?.result.permit.leave(failure);
    if (failure !== undefined) stream?.fail(failure, servedOf(stream, response));
  }
}

/** What becomes of the parts of a stream before anything reads them; undefined where they stay as they are. */
function filterOf(isFormatted: boolean, guard: PolicyGuard | undefined) {
  const unfence = isFormatted ? makeFenceFilter() : undefined;
  const guardParts = guard?.isOn("output", "toolInput") ? makePartsGuard(guard) : undefined;
  if (guardParts === undefined) return unfence;
  return (parts: StreamPart[]) => guardParts(unfence ? unfence(parts) : parts);
}

/** The served part of a stream, which the provider bills whether the stream ended or broke off. */
function servedOf({ request: { messages }, model }: OpenStream, response: StreamedResponse) {
  return {
    usage: response.usage(),
    estimate: () => response.measure({ messages, model }),
    text: response.content().text,
  };
}

/** Settles a stream that came to its end, and reports it. Throws as `settle`. */
async function endStream(stream: OpenStream, response: StreamedResponse): Promise<StreamEnd> {
  const { finishReason = "stop", providerFinishReason } = response.finish() ?? {};
  const { toolCalls } = response.content();
  const given = response.parts();
  const parts = given && markReasoning(given, stream.model.provider);
  const settled = await stream.settle({ ...servedOf(stream, response), finishReason });
  return { type: "end", toolCalls, ...defined({ parts, providerFinishReason }), ...settled };
}

/** The fields that a stream has reported about itself. */
export function factsOf(response: StreamedResponse) {
  const { finishReason, providerFinishReason } = response.finish() ?? {};
  return { ...response.about(), usage: response.usage(), finishReason, providerFinishReason };
}

/** A signal that aborts with the caller's signal, or if the stream is released before it is complete. */
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

type OpenStream = Attempt<{
  first: StreamPart[];
  rest(): Promise<StreamPart[] | undefined>;
  leave(): Promise<unknown>;
  permit: AttemptPermit;
}>;

/** Opens the stream of one model and reads its first parts, with retries. When it does not open, its record is settled. */
async function openStream(
  deps: GatewayDeps,
  chat: PlannedChat,
  modelAttempt: ModelAttempt,
  signal: AbortSignal,
): Promise<OpenStream> {
  const { provider } = modelAttempt.target;
  const stream = await attempt(deps, chat, modelAttempt, {
    isStreamed: true,
    signal,
    async ask(readable, context, permit) {
      const iterator = provider.stream(readable, context)[Symbol.asyncIterator]();
      const rest = async () => {
        const result = await iterator.next();
        return result.done ? undefined : result.value;
      };
      const first = await rest();
      if (first === undefined) throw providerFault("The provider sent an empty stream.");
      return { first, rest, leave: async () => iterator.return?.(), permit };
    },
  });
  stream.onFirstToken();
  return stream;
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
