import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";
import { AppError } from "../../../errors.ts";
import type { StreamPart } from "../provider.ts";
import type { TransportStream } from "../transport.ts";
import { toFinishReason } from "./chat.ts";
import { fromStreamError, malformed } from "./errors.ts";
import type { WireChunk } from "./schemas.ts";

/** An event larger than this is refused, so that a server that never ends its line cannot fill the memory. */
const MAX_EVENT_CHARACTERS = 8 << 20;

type WireStream = Pick<TransportStream, "chunks" | "finish">;

/**
 * The parts of the streamed completion that `open` begins, those of one network chunk at a time. The stream is whole when the model told why
 * it finished; the usage that follows is read when it comes.
 * @throws AppError `provider_failed` for malformed events, reported errors, and a stream that ends before its finish.
 */
export async function* fromWireStream(open: () => Promise<WireStream>): AsyncGenerator<StreamPart[]> {
  const stream = await open();
  const reader = makeEventReader();
  const decoder = new StringDecoder("utf8");
  try {
    for await (const chunk of stream.chunks) {
      const parts = reader.read(decoder.write(chunk));
      if (reader.isDone()) stream.finish();
      if (parts.length > 0) yield parts;
      // What came before a fault has been served, so it is told first.
      reader.throwFault();
      if (reader.isDone()) return;
    }
  } catch (error) {
    // Once the answer itself is whole, only its usage or the closing line can be lost.
    if (!reader.isWhole() || isCallersOwn(error)) throw error;
  }
  if (!reader.isWhole()) {
    throw new AppError("provider_failed", "The provider's stream ended in the middle of the answer.", {
      details: { code: "stream_cut" },
      retryable: true,
    });
  }
  yield reader.end();
}

function isCallersOwn(error: unknown): boolean {
  return error instanceof AppError && (error.code === "client_closed" || error.code === "cancelled");
}

/** Reads events into parts. `end` is given when the server says `[DONE]`, for the usage comes after the finish reason. */
function makeEventReader() {
  let parts: StreamPart[] = [];
  let finish: string | undefined;
  let hasToolCalls = false;
  let isDone = false;
  let failure: AppError | undefined;
  const end = (): StreamPart[] => [{ type: "end", finishReason: toFinishReason(finish, hasToolCalls) }];
  const readEvent = (data: string) => {
    if (failure !== undefined || isDone) return;
    if (data === "[DONE]") {
      if (finish === undefined) return;
      isDone = true;
      parts.push(...end());
      return;
    }
    let chunk: WireChunk | null;
    try {
      chunk = JSON.parse(data); // the shape is checked field by field below
    } catch {
      failure = malformed("a chunk that is not JSON"); // without the cause: its message quotes the answer
      return;
    }
    if (typeof chunk !== "object" || chunk === null) failure = malformed("a chunk that is not an object");
    else if (chunk.error) failure = fromStreamError(chunk.error);
    else finish = readChunk(chunk, parts) ?? finish;
  };
  const parser = createParser({
    onEvent: (event) => readEvent(event.data),
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") failure = malformed("an event that is too large", error);
    },
    maxBufferSize: MAX_EVENT_CHARACTERS,
  });
  return {
    read(text: string): StreamPart[] {
      parts = [];
      parser.feed(text);
      if (!hasToolCalls) hasToolCalls = parts.some((part) => part.type === "tool-call-delta");
      return parts;
    },
    throwFault: () => {
      if (failure !== undefined) throw failure;
    },
    isWhole: () => finish !== undefined && failure === undefined,
    isDone: () => isDone,
    end,
  };
}

/** Adds the parts of one event, and returns its finish reason when it has one. Only the first choice is read. */
function readChunk(chunk: WireChunk, parts: StreamPart[]): string | undefined {
  const usage = chunk.usage;
  if (usage && typeof usage.prompt_tokens === "number") {
    parts.push({
      type: "usage",
      usage: { inputTokens: usage.prompt_tokens, outputTokens: Number(usage.completion_tokens ?? 0) },
    });
  }
  const choice = chunk.choices?.[0];
  if (choice === undefined) return undefined;
  const delta = choice.delta;
  if (delta) {
    const text = delta.content ?? delta.refusal;
    if (typeof text === "string" && text.length > 0) parts.push({ type: "text-delta", text });
    const reasoning = delta.reasoning_content ?? delta.reasoning;
    if (typeof reasoning === "string" && reasoning.length > 0) parts.push({ type: "reasoning-delta", text: reasoning });
    if (Array.isArray(delta.tool_calls)) readToolCalls(delta.tool_calls, parts);
  }
  return typeof choice.finish_reason === "string" ? choice.finish_reason : undefined;
}

type WireToolCalls = { index?: number; id?: string; function?: { name?: string; arguments?: string } }[];

function readToolCalls(calls: WireToolCalls, parts: StreamPart[]): void {
  calls.forEach((call, n) => {
    const name = call.function?.name;
    parts.push({
      type: "tool-call-delta",
      index: call.index ?? n,
      ...(typeof call.id === "string" ? { id: call.id } : {}),
      ...(typeof name === "string" ? { name } : {}),
      argumentsDelta: call.function?.arguments ?? "",
    });
  });
}
