import type { Platform } from "../src/platform.ts";
import { READER_BYTES, writeBytes } from "./byte-stream.ts";
import { type ApiContext, sendReply } from "./context.ts";
import { watchKey } from "./middleware/authenticate.ts";
import type { BodyBudget } from "./middleware/body-budget.ts";
import { logError, toAppError, toErrorBody } from "./middleware/errors.ts";
import type { BytesReply, HandlerInput, Reply } from "./route.ts";
import { writeEventStream } from "./sse.ts";

/**
 * Sends a reply. What waits for a slow reader counts as memory of its tenant: of a stream of bytes some pieces, of a large JSON all.
 * A large answer to a GET is refused if there is no room for it; what other calls have done cannot be.
 */
export async function writeReply(
  ctx: ApiContext,
  reply: Reply,
  { platform, budget, inTurn }: { platform: Platform; budget: BodyBudget } & Pick<HandlerInput, "inTurn">,
): Promise<void> {
  const { requestId, signal } = ctx.state;
  const isHeadOnly = ctx.method === "HEAD";
  if (!("events" in reply)) {
    const send = (bytes: BytesReply) => {
      ctx.respond = false;
      return writeBytes(ctx.res, bytes, { headers: { ...ctx.state.headers, ...bytes.headers }, signal, isHeadOnly });
    };
    if (isHeadOnly) return "bytes" in reply ? send(reply) : sendReply(ctx, reply);
    const take = ctx.method === "GET" ? budget.reserve : budget.count;
    if ("bytes" in reply) {
      take(ctx, READER_BYTES);
      return send({ ...reply, bytes: eachInTurn(reply.bytes, { inTurn, signal }) });
    }
    return sendReply(ctx, reply, (large) => {
      if (!Buffer.isBuffer(reply.body)) take(ctx, large.length ?? 0); // a buffer is one for all its readers
      return send(large);
    });
  }
  ctx.respond = false;
  // Read when the head is sent: what a fallback does not take is known with the first event.
  const headers = () => ({ ...ctx.state.headers, ...reply.headers });
  const toEvent = reply.toErrorEvent ?? ((error) => ({ data: { error, done: true } }));
  const onError = (thrown: unknown) => {
    const error = toAppError(thrown);
    logError(platform.logger, error, ctx);
    return toEvent(toErrorBody(error, requestId).error);
  };
  const release = watchKey(ctx, platform.tenancy);
  try {
    await writeEventStream(ctx.res, reply, { headers, signal, onError, isHeadOnly, inTurn });
  } catch (error) {
    ctx.respond = true; // nothing was sent yet: an ordinary error response
    throw error;
  } finally {
    release();
  }
}

/** The same bytes, each piece read in the turn of its tenant: many readers at once would fill the store's queue with theirs. */
async function* eachInTurn(
  bytes: BytesReply["bytes"],
  { inTurn, signal }: Pick<HandlerInput, "inTurn" | "signal">,
): AsyncGenerator<Uint8Array> {
  const pieces = Symbol.asyncIterator in bytes ? bytes[Symbol.asyncIterator]() : bytes[Symbol.iterator]();
  try {
    for (;;) {
      const piece = await inTurn(async () => pieces.next());
      if (piece.done) return;
      yield piece.value;
    }
  } catch (error) {
    if (!signal.aborted) throw error; // else the reader has left while it waited
  } finally {
    await pieces.return?.();
  }
}
