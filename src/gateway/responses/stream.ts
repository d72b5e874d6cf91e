import type { ErrorView } from "../../errors.ts";
import type { ChatEvent } from "../chat/steps.ts";
import type { StreamEnd } from "../chat/stream.ts";
import { withOwnName } from "./field-names.ts";
import type { ResponsesBody } from "./request-schemas.ts";
import { beginOutput, endResponse, isWhole, type MadeResponse } from "./response.ts";
import type { ResponseEvent, ResponseObject } from "./response-schemas.ts";

export type NumberedEvent = ResponseEvent & { sequence_number: number };

type Streamed = {
  /** The response as it begins. */
  begun: ResponseObject;
  body: ResponsesBody;
  batches: AsyncIterable<ChatEvent[]>;
  /** Those of `fromResponsesBody`. */
  places: readonly string[];
  /** Stores the response, which is reported as it is then. */
  keep(made: MadeResponse): Promise<ResponseObject>;
};

/** The semantic events of a streamed response, those of one batch together, and the event of one that breaks off. */
export function makeResponseStream({ begun, body, batches, places, keep }: Streamed) {
  let sequence = 0;
  let events: NumberedEvent[] = [];
  const number = (event: ResponseEvent): NumberedEvent => ({ ...event, sequence_number: sequence++ });
  const emit = (event: ResponseEvent) => void events.push(number(event));
  const output = beginOutput(begun, body, emit);
  const end = async (event: StreamEnd) => {
    output.end(isWhole(event.finishReason));
    const ended = endResponse(begun, output.items, event);
    const response = begun.store ? await keep({ response: ended, kept: output.kept() }) : ended;
    emit({ type: response.status === "incomplete" ? "response.incomplete" : "response.completed", response });
  };
  return {
    async *events(): AsyncGenerator<NumberedEvent[]> {
      try {
        for await (const batch of batches) {
          if (sequence === 0) {
            emit({ type: "response.created", response: begun });
            emit({ type: "response.in_progress", response: begun });
          }
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
    },
    /** OpenAI's clients know two codes of a response that failed: of one that may be asked for again later, and of any other. */
    toFailure({ code, message }: ErrorView): NumberedEvent {
      const isLimited = code === "provider_rate_limited" || code === "rate_limited";
      const error = { code: isLimited ? "rate_limit_exceeded" : "server_error", message };
      return number({ type: "response.failed", response: { ...begun, status: "failed", error, store: false } });
    },
  };
}
