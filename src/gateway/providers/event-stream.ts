import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";
import { AppError } from "../../errors.ts";
import { tryParseJson } from "../../try-parse-json.ts";
import type { TransportStream } from "../resilience/transport.ts";
import { streamCut } from "../resilience/transport-errors.ts";
import type { CallContext, StreamPart, Usage } from "./provider.ts";
import { malformed } from "./wire-errors.ts";

/** An event larger than this is refused, so that a server that never ends its line cannot fill the memory. */
const MAX_EVENT_CHARACTERS = 8 << 20;

/** Reads the events of one streamed completion in a provider's wire format. */
export type EventReader = {
  /** Adds the parts of one event's data; with the last one also the `end`. @throws AppError for a fault. */
  read(data: string, parts: StreamPart[]): void;
  /** Whether the answer is complete, although usage or the closing event may still come. */
  isWhole(): boolean;
  /** Whether the closing event was read. */
  isDone(): boolean;
  /** The provider's count of the prompt, where it reports that at the start. */
  promptUsage(): Usage | undefined;
  /** The last parts of an answer that is whole, and whose closing event did not come. */
  end(): StreamPart[];
};

/**
 * The parts of the streamed completion that `open` begins, those of one network chunk at a time. The stream is whole when
 * the model said why it finished; the usage that follows is read when it comes.
 * @throws AppError `provider_failed` for malformed events, reported errors, and a stream that ends before its finish.
 */
export async function* readEventStream(
  open: (onGivenUp: () => void) => Promise<Pick<TransportStream, "chunks" | "finish">>,
  reader: EventReader,
  context: Pick<CallContext, "onCharged"> = {},
): AsyncGenerator<StreamPart[]> {
  let isGivenUp = false;
  let hasYielded = false;
  const events = makeEvents(reader);
  try {
    const stream = await open(() => {
      isGivenUp = true;
    });
    for await (const chunk of stream.chunks) {
      const parts = events.feed(chunk);
      if (reader.isDone()) stream.finish();
      if (parts.length > 0) {
        hasYielded = true;
        yield parts;
      }
      // What came before a fault has been served, so it is yielded first.
      const failure = events.failure();
      if (failure !== undefined) throw failure;
      if (reader.isDone()) return;
    }
  } catch (error) {
    // Once the answer itself is whole, only its usage or the closing event can be lost.
    if (events.failure() !== undefined || !reader.isWhole() || isCallersOwn(error)) throw error;
  } finally {
    // Once there are parts, their reader knows what was served; before, it is the prompt.
    if (!hasYielded && !reader.isWhole() && (isGivenUp || events.hasBegun())) {
      const promptUsage = reader.promptUsage();
      context.onCharged?.(promptUsage === undefined ? {} : { promptUsage });
    }
  }
  if (!reader.isWhole()) throw streamCut();
  yield reader.end();
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
        reader.read(event.data, parts);
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
    failure: () => failure,
  };
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
