import type { ErrorView } from "../../errors.ts";
import type { StreamEvent } from "../chat/stream.ts";
import { withOwnName } from "./field-names.ts";
import type { ResponsesBody } from "./request-schemas.ts";
import { beginOutput, beginResponse, endResponse, isWhole } from "./response.ts";
import type { ResponseEvent } from "./response-schemas.ts";

export type NumberedEvent = ResponseEvent & { sequence_number: number };

/** The semantic events of a streamed response, those of one batch together, and the event of one that breaks off. `places` are those of `fromResponsesBody`. */
export function makeResponseStream(
  body: ResponsesBody,
  batches: AsyncIterable<StreamEvent[]>,
  places: readonly string[],
) {
  const begun = beginResponse(body);
  let sequence = 0;
  let events: NumberedEvent[] = [];
  const number = (event: ResponseEvent): NumberedEvent => ({ ...event, sequence_number: sequence++ });
  const emit = (event: ResponseEvent) => void events.push(number(event));
  const output = beginOutput(begun, body, emit);
  const take = (event: StreamEvent) => {
    if (event.type !== "end") return output.take(event);
    output.end(isWhole(event.finishReason));
    const response = endResponse(begun, output.items, event);
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
          for (const event of batch) take(event);
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
      return number({ type: "response.failed", response: { ...begun, status: "failed", error } });
    },
  };
}
