import type { Connection } from "../../resilience/transport.ts";
import { bearer } from "../openai-wire/provider.ts";
import type { Provider } from "../provider.ts";
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
  return {
    complete: (request, context) => {
      const reader = {
        read: (body: string) => fromResponse(body, request.model),
        measure: measureResponse,
        isSlow: true,
      };
      return client.send(RESPONSES, toWireRequest(request, false), context, reader);
    },
    stream: (request, context) => client.stream(RESPONSES, toWireRequest(request, true), context, makeResponseReader()),
    close: () => client.close(),
  };
}
