import { readEventStream } from "../event-stream.ts";
import type { Provider, ProviderId } from "../provider.ts";
import type { TransportTimeouts } from "../transport.ts";
import { makeWireClient } from "../wire-client.ts";
import { fromWireChat, toWireChat, type WireDialect } from "./chat.ts";
import { fromWireEmbeddings, toWireEmbeddings } from "./embed.ts";
import { makeChunkReader } from "./stream.ts";

export type WireProviderOptions = {
  id: ProviderId;
  /** As OpenAI's clients take it: the part before `/chat/completions`. */
  baseUrl: string;
  /** The platform's key for calls that bring none. */
  apiKey: string | undefined;
  dialect: WireDialect;
  timeouts: TransportTimeouts;
};

/** A provider for any server that speaks OpenAI's wire format. */
export function makeWireProvider(options: WireProviderOptions): Required<Omit<Provider, "batches">> {
  const { baseUrl, apiKey, dialect, timeouts } = options;
  const toHeaders = (key: string | undefined): Record<string, string> =>
    key === undefined ? {} : { authorization: `Bearer ${key}` };
  const client = makeWireClient({ baseUrl, apiKey, timeouts, toHeaders });
  return {
    id: options.id,
    complete: async (request, context) => {
      const body = toWireChat(request, dialect, false);
      return fromWireChat(await client.send("/chat/completions", body, context, true), request.model);
    },
    stream: (request, context) =>
      readEventStream(
        () => client.open("/chat/completions", toWireChat(request, dialect, true), context),
        makeChunkReader(),
      ),
    embed: async (request, context) =>
      fromWireEmbeddings(await client.send("/embeddings", toWireEmbeddings(request), context), request),
    close: () => client.close(),
  };
}
