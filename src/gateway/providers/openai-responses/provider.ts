import type { TransportTimeouts } from "../../resilience/transport.ts";
import { bearer } from "../openai-wire/provider.ts";
import type { Provider } from "../provider.ts";
import { makeWireClient } from "../wire-client.ts";
import { type Reasons, toWireRequest } from "./request.ts";
import { fromResponse, measureResponse } from "./response.ts";
import { makeResponseReader } from "./stream.ts";

const RESPONSES = "/responses";

export type ResponsesProviderOptions = {
  /** As OpenAI's clients take it: the part before `/responses`. */
  baseUrl: string;
  /** The platform's key for calls that bring none. */
  apiKey: string | undefined;
  reasons: Reasons;
  timeouts: TransportTimeouts;
};

/** A provider for any server that speaks OpenAI's Responses API. */
export function makeResponsesProvider(
  options: ResponsesProviderOptions,
): Required<Pick<Provider, "complete" | "stream" | "close">> {
  const { baseUrl, apiKey, reasons, timeouts } = options;
  const client = makeWireClient({ baseUrl, apiKey, timeouts, toHeaders: bearer });
  return {
    complete: (request, context) => {
      const reader = {
        read: (body: string) => fromResponse(body, request.model),
        measure: measureResponse,
        isSlow: true,
      };
      return client.send(RESPONSES, toWireRequest(request, reasons, false), context, reader);
    },
    stream: (request, context) =>
      client.stream(RESPONSES, toWireRequest(request, reasons, true), context, makeResponseReader()),
    close: () => client.close(),
  };
}
