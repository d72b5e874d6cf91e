import type { Connection } from "../../resilience/transport.ts";
import type { CompletionRequest, KeyedProvider, Provider, ToHeaders } from "../provider.ts";
import { makeWireClient } from "../wire-client.ts";
import { makeAnthropicBatches } from "./batches.ts";
import { fromMessage, measureMessage } from "./chat.ts";
import { makeForwarding } from "./forward.ts";
import { anthropicModels } from "./models.ts";
import { toMessagesParams, willRepeat } from "./request.ts";
import { makeMessageReader } from "./stream.ts";

/** The version of the API that the mappings here were written for; the header is required. */
const API_VERSION = "2023-06-01";
const MESSAGES = "/v1/messages";

/** Anthropic's Messages API, with the key that each call brings. It has no embeddings. */
export const anthropic: KeyedProvider = {
  models: anthropicModels,
  keys: {
    fits: /^sk-ant-/,
    form: "must begin with sk-ant-, as Anthropic's keys do",
    // https://docs.anthropic.com/en/api/models-list
    toCheck: (apiKey) => ({ path: "/v1/models?limit=1", headers: toHeaders(apiKey) }),
  },
  open: (connection) => ({
    ...openMessages(connection),
    batches: makeAnthropicBatches(connection.baseUrl, toHeaders),
  }),
};

const toHeaders: ToHeaders = (key) => ({
  "anthropic-version": API_VERSION,
  ...(key === undefined ? {} : { "x-api-key": key }),
});

/** A server of the Messages API; its `baseUrl` is as Anthropic's clients take it, the part before `/v1/messages`. */
export function openMessages(connection: Connection): Provider {
  const client = makeWireClient({ ...connection, toHeaders });
  const readOf =
    ({ model, tools }: CompletionRequest) =>
    (body: string) =>
      fromMessage(body, model, tools);
  return {
    complete: (request, context) => {
      const body = JSON.stringify(toMessagesParams(request, willRepeat(request)));
      return client.send(MESSAGES, body, context, { read: readOf(request), measure: measureMessage, isSlow: true });
    },
    stream: (request, context) => {
      const body = JSON.stringify({ ...toMessagesParams(request, willRepeat(request)), stream: true });
      const reader = { ...makeMessageReader(request.tools), readWhole: readOf(request) };
      return client.stream(MESSAGES, body, context, reader);
    },
    forward: makeForwarding(client),
    close: () => client.close(),
  };
}
