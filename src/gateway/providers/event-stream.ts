import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";
import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";
import type { ProvidedPart } from "../messages.ts";
import type { TransportStream } from "../resilience/transport.ts";
import { streamCut } from "../resilience/transport-errors.ts";
import type { AnswerNames, CallContext, CompletionResult, StreamPart, Usage } from "./provider.ts";
import { malformed, withoutKey } from "./wire-errors.ts";

/** An event larger than this is refused, so that a server that never ends its line cannot fill the memory. */
const MAX_EVENT_CHARACTERS = 8 << 20;
/** The same limit for an answer that comes whole. */
const MAX_BODY_BYTES = 64 << 20;
/** Characters of a streamed answer at most: some quarter of a million tokens, which are kept until the stream ends. */
const MAX_SAID = 1 << 20;
/** What is read of a stream at once, in bytes: what it says meanwhile is read when that is sent. */
const PIECE_BYTES = 16 << 10;
/** What is looked at of a body to see what it is, in bytes. */
const LONGEST_START = 64;

/** Reads the events of one streamed completion in a provider's wire format. */
export type EventReader = {
  /** Adds the parts of one event's data; with the last one also the `end`. `name`: of the event. @throws AppError for a fault. */
  read(data: string, parts: StreamPart[], name?: string): void;
  /** Whether the answer is complete, although usage or the closing event may still come. */
  isWhole(): boolean;
  /** Whether the closing event was read. */
  isDone(): boolean;
  /** The provider's count of the prompt, where it reports that at the start. */
  promptUsage(): Usage | undefined;
  /** The last parts of an answer that is whole, and whose closing event did not come. */
  end(): StreamPart[];
};

/** A reader that can also read a whole answer, if a server sends that instead of a stream. Throws as a provider does. */
export type AnswerReader = EventReader & { readWhole(body: string): CompletionResult };

/**
 * The parts of the streamed completion that `open` begins, those of one network chunk at a time. The stream is whole when
 * the model said why it finished; the usage that follows is read when it comes.
 * @throws AppError `provider_failed` for malformed events, reported errors, a stream that ends before its finish, and one of
 * more than `maxAnswerBytes` characters, or 1 MiB.
 */
export async function* readEventStream(
  open: (onGivenUp: () => void) => Promise<Pick<TransportStream, "chunks" | "finish">>,
  reader: AnswerReader,
  context: Pick<CallContext, "onCharged" | "maxAnswerBytes"> & { apiKey?: string | undefined } = {},
): AsyncGenerator<StreamPart[]> {
  const maxSaid = Math.min(context.maxAnswerBytes ?? MAX_SAID, MAX_SAID);
  let said = 0;
  let isGivenUp = false;
  let hasYielded = false;
  const events = makeEvents(reader);
  const whole = makeWholeBody();
  try {
    const stream = await open(() => {
      isGivenUp = true;
    });
    for await (const chunk of inPieces(stream.chunks)) {
      if (whole.take(chunk)) continue;
      const parts = events.feed(chunk);
      if (reader.isDone()) stream.finish();
      if (parts.length > 0) {
        said += parts.reduce((sum, part) => sum + charactersOf(part), 0);
        hasYielded = true;
        yield parts;
      }
      // All of it is kept until the stream ends, and a server may never end it.
      if (said > maxSaid) throw malformed("a stream that is longer than its model can say");
      // Parts before a fault were served, so they are yielded first.
      const failure = events.failure();
      if (failure !== undefined) throw failure;
      if (reader.isDone()) return;
    }
  } catch (error) {
    // Once the answer itself is whole, only its usage or the closing event can be lost.
    if (events.failure() !== undefined || !reader.isWhole() || isCallersOwn(error))
      throw withoutKey(error, context.apiKey);
  } finally {
    // Once there are parts, their reader knows what was served; before, it is the prompt.
    if (!hasYielded && !reader.isWhole() && (isGivenUp || events.hasBegun())) {
      const promptUsage = reader.promptUsage();
      context.onCharged?.(promptUsage === undefined ? {} : { promptUsage });
    }
  }
  const body = whole.text();
  if (body !== undefined) {
    yield toStreamParts(readWhole(reader, body, context.apiKey));
    return;
  }
  if (!reader.isWhole()) throw events.endedEarly();
  yield reader.end();
}

async function* inPieces(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks)
    for (let from = 0; from < chunk.length; from += PIECE_BYTES) yield chunk.subarray(from, from + PIECE_BYTES);
}

function charactersOf(part: StreamPart): number {
  if (part.type === "text-delta" || part.type === "reasoning-delta") return part.text.length;
  return part.type === "tool-call-delta" ? part.argumentsDelta.length : 0;
}

function readWhole(reader: AnswerReader, body: string, apiKey: string | undefined): CompletionResult {
  try {
    return reader.readWhole(body);
  } catch (error) {
    throw withoutKey(error, apiKey);
  }
}

/** Gathers a body that is a JSON object, as no event begins: a server that does not stream, or that reports an error. */
export function makeWholeBody() {
  let isJson: boolean | undefined;
  let bytes = 0;
  const chunks: Buffer[] = [];
  return {
    /** Whether a chunk belongs to such a body. @throws AppError `provider_failed` for one that is too large. */
    take(chunk: Buffer): boolean {
      isJson ??= startsObject(chunk);
      if (isJson !== true) return false;
      bytes += chunk.length;
      if (bytes > MAX_BODY_BYTES) throw malformed("an answer that is too large");
      chunks.push(chunk);
      return true;
    },
    /** All of it; undefined for a body of another kind. */
    text: () => (isJson === true ? Buffer.concat(chunks).toString("utf8") : undefined),
  };
}

/** Undefined as long as there are only blanks. */
function startsObject(chunk: Buffer): boolean | undefined {
  const text = chunk
    .subarray(0, LONGEST_START)
    .toString("utf8")
    .replace(/^\uFEFF/, "")
    .trimStart();
  return text === "" ? undefined : text.startsWith("{") || text.startsWith("[{");
}

/** A whole answer as the parts of a stream. */
function toStreamParts(result: CompletionResult): StreamPart[] {
  const { text, reasoning, toolCalls, usage, finishReason, providerFinishReason, responseId, model, logprobs } = result;
  const calls = toolCalls.map((call) => ({ type: "tool-call" as const, ...call }));
  const turn: readonly ProvidedPart[] = result.parts ?? [
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...calls,
  ];
  let index = 0;
  const parts = turn.map((part): StreamPart => {
    if (part.type === "text") return { type: "text-delta", text: part.text };
    if (part.type === "reasoning") return { type: "reasoning-item", item: part.item };
    return { type: "tool-call-delta", index: index++, id: part.id, name: part.name, argumentsDelta: part.arguments };
  });
  const first = parts.find((part) => part.type === "text-delta");
  if (first && logprobs) first.logprobs = logprobs;
  return [
    ...(reasoning === undefined ? [] : [{ type: "reasoning-delta" as const, text: reasoning }]),
    ...parts,
    ...(usage === undefined ? [] : [{ type: "usage" as const, usage }]),
    { type: "end", ...defined({ finishReason, providerFinishReason, responseId, model }) },
  ];
}

/** Takes the bytes of a stream in, and gives the parts of its events until one of them is a fault. */
export function makeEvents(reader: EventReader) {
  const decoder = new StringDecoder("utf8");
  let parts: StreamPart[] = [];
  let hasBegun = false;
  let failure: unknown;
  const parser = createParser({
    onEvent: (event) => {
      if (failure !== undefined || reader.isDone()) return;
      try {
        reader.read(event.data, parts, event.event);
        hasBegun = true;
      } catch (error) {
        // Readers check a shape as they need it: what they stumble over is the server's mistake.
        failure = error instanceof TypeError ? malformed("a chunk of another form", error) : error;
      }
    },
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") failure = malformed("an event that is too large", error);
    },
    maxBufferSize: MAX_EVENT_CHARACTERS,
  });
  return {
    feed: (chunk: Buffer): StreamPart[] => {
      parts = [];
      parser.feed(decoder.write(chunk));
      return parts;
    },
    hasBegun: () => hasBegun,
    /** The error of a stream whose answer is not whole at its end: a page that was sent in its place has no event. */
    endedEarly: () => (hasBegun ? streamCut() : malformed("nothing that can be read as an answer")),
    failure: () => failure,
  };
}

/** Id and model at the start of an answer. A server may leave them out. */
export function readNames({ id, model }: { id?: unknown; model?: unknown }): AnswerNames {
  const textOf = (name: unknown) => (typeof name === "string" && name !== "" ? name : undefined);
  return defined({ responseId: textOf(id), model: textOf(model) });
}

/** The JSON object of an event's data. @throws AppError `provider_failed` for anything else. */
export function parseEvent(data: string): object {
  const event = tryParseJson(data);
  if (event === undefined) throw malformed("a chunk that is not JSON");
  if (typeof event !== "object" || event === null) throw malformed("a chunk that is not an object");
  return event;
}

function isCallersOwn(error: unknown): boolean {
  return error instanceof AppError && (error.code === "client_closed" || error.code === "cancelled");
}
