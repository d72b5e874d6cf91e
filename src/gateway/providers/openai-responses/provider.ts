import type { Connection } from "../../resilience/transport.ts";
import { bearer } from "../openai-wire/provider.ts";
import type { CompletionRequest, Provider } from "../provider.ts";
import { makeWireClient } from "../wire-client.ts";
import { toWireRequest } from "./request.ts";
import { fromResponse, measureResponse } from "./response.ts";
import { makeResponseReader } from "./stream.ts";

const RESPONSES = "/responses";

/** A provider for any server that speaks OpenAI's Responses API; `baseUrl` is the part before `/responses`. */
export function makeResponsesProvider(
  connection: Connection,
): Required<Pick<Provider, "complete" | "stream" | "close">> {
  const client = makeWireClient({ ...connection, toHeaders: bearer });
  const readOf =
    ({ model, tools }: CompletionRequest) =>
    (body: string) =>
      fromResponse(body, model, tools);
  return {
    complete: (request, context) => {
      const reader = { read: readOf(request), measure: measureResponse, isSlow: true };
      return client.send(RESPONSES, toWireRequest(request, false), context, reader);
    },
    stream: (request, context) => {
      const reader = { ...makeResponseReader(request.tools), readWhole: readOf(request) };
      return client.stream(RESPONSES, toWireRequest(request, true), context, reader);
    },
    close: () => client.close(),
  };
}
