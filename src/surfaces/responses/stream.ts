import type { StreamEnd } from "../../gateway/chat/stream.ts";
import type { ErrorView } from "../../lib/errors.ts";
import { withOwnName } from "./field-names.ts";
import type { ResponsesBody } from "./request-schemas.ts";
import { beginOutput, endResponse, failResponse, isWhole, type MadeResponse } from "./response.ts";
import type { ResponseEvent, ResponseObject } from "./response-schemas.ts";
import type { ResponseStep } from "./steps.ts";

export type NumberedEvent = ResponseEvent & { sequence_number: number };

type Streamed = {
  /** The response as it begins. */
  begun: ResponseObject;
  body: ResponsesBody;
  batches: AsyncIterable<ResponseStep[]>;
  /** Those of `fromResponsesBody`. */
  places: readonly string[];
  /** Stores the response, which is reported as it is then. */
  keep(made: MadeResponse): Promise<ResponseObject>;
  /** The place of its first item, where an earlier attempt has begun some. */
  firstItem?: number;
};

/** The events of what a model says, those of one batch together, and at last the end of the response. */
export async function* toOutputEvents(streamed: Streamed): AsyncGenerator<ResponseEvent[]> {
  const { begun, body, batches, places, keep, firstItem } = streamed;
  let events: ResponseEvent[] = [];
  const emit = (event: ResponseEvent) => void events.push(event);
  const output = beginOutput(begun, body, emit, firstItem);
  const end = async (event: StreamEnd) => {
    output.end(isWhole(event.finishReason));
    const ended = endResponse(begun, output.items, event);
    const response = begun.store ? await keep({ response: ended, kept: output.kept() }) : ended;
    emit({ type: response.status === "incomplete" ? "response.incomplete" : "response.completed", response });
  };
  try {
    for await (const batch of batches) {
      for (const event of batch) {
        if (event.type === "end") await end(event);
        else output.take(event);
      }
      yield events;
      events = [];
    }
  } catch (error) {
    throw withOwnName(error, places);
  }
}

/** The semantic events of a streamed response, those of one batch together, and the event of one that breaks off. */
export function makeResponseStream(streamed: Streamed) {
  const { begun } = streamed;
  let sequence = 0;
  const number = (event: ResponseEvent): NumberedEvent => {
    const numbered = event as NumberedEvent; // each is made for one stream; a copy of each token's costs a tenth of it
    numbered.sequence_number = sequence++;
    return numbered;
  };
  return {
    async *events(): AsyncGenerator<NumberedEvent[]> {
      for await (const events of toOutputEvents(streamed)) {
        if (sequence === 0)
          events.unshift(
            { type: "response.created", response: begun },
            { type: "response.in_progress", response: begun },
          );
        yield events.map(number);
      }
    },
    toFailure: (error: ErrorView): NumberedEvent =>
      number({ type: "response.failed", response: { ...failResponse(begun, error), store: false } }),
  };
}
