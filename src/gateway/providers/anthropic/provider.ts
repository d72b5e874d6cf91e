import type { Config } from "../../../config.ts";
import { readEventStream } from "../event-stream.ts";
import type { Provider } from "../provider.ts";
import { makeWireClient } from "../wire-client.ts";
import { makeAnthropicBatches } from "./batches.ts";
import { fromMessageText, measureMessage } from "./chat.ts";
import { toMessagesParams } from "./request.ts";
import { makeMessageReader } from "./stream.ts";

/** The version of the API that the mappings here were written for; the header is required. */
const API_VERSION = "2023-06-01";
const MESSAGES = "/v1/messages";

/** Anthropic's Messages API, with the key that each call brings. It has no embeddings. */
export function makeAnthropicProvider({
  anthropic,
  timeouts,
}: Pick<Config["gateway"], "anthropic" | "timeouts">): Provider {
  const toHeaders = (key: string | undefined): Record<string, string> => ({
    "anthropic-version": API_VERSION,
    ...(key === undefined ? {} : { "x-api-key": key }),
  });
  const client = makeWireClient({ baseUrl: anthropic.baseUrl, timeouts, toHeaders });
  return {
    id: "anthropic",
    complete: (request, context) => {
      const body = JSON.stringify(toMessagesParams(request));
      const read = (text: string) => fromMessageText(text, request.model);
      return client.send(MESSAGES, body, context, { read, measure: measureMessage, isSlow: true });
    },
    stream: (request, context) =>
      readEventStream(
        (onGivenUp) =>
          client.open(MESSAGES, JSON.stringify({ ...toMessagesParams(request), stream: true }), context, onGivenUp),
        makeMessageReader(),
        context,
      ),
    batches: makeAnthropicBatches(anthropic.baseUrl, toHeaders),
    close: () => client.close(),
  };
}
