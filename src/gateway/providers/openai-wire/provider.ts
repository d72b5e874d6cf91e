import type { CallContext, Provider, ProviderId } from "../provider.ts";
import { makeTransport, type TransportAnswer, type TransportCall, type TransportTimeouts } from "../transport.ts";
import { fromWireChat, toWireChat, type WireDialect } from "./chat.ts";
import { fromWireEmbeddings, toWireEmbeddings } from "./embed.ts";
import { fromWireError } from "./errors.ts";
import { fromWireStream } from "./stream.ts";

/** An error body is read up to this, in bytes. */
const MAX_ERROR_BYTES = 64 << 10;

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
export function makeWireProvider(options: WireProviderOptions): Required<Provider> {
  const transport = makeTransport(options.baseUrl, options.timeouts);
  const toCall = (path: string, body: string, context: CallContext): TransportCall => {
    const apiKey = context.apiKey ?? options.apiKey;
    return {
      path,
      body,
      signal: context.signal,
      headers: {
        "content-type": "application/json",
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      },
    };
  };
  const send = async (path: string, body: string, context: CallContext): Promise<string> => {
    const answer = await transport.send(toCall(path, body, context));
    if (answer.status < 200 || answer.status > 299) throw toError(answer, answer.body, context);
    return answer.body;
  };
  /** The error of an answer, wherever a server should quote the key, without it. */
  const toError = (
    { status, headers }: Pick<TransportAnswer, "status" | "headers">,
    body: string,
    context: CallContext,
  ) => {
    const apiKey = context.apiKey ?? options.apiKey;
    return fromWireError(status, headers, apiKey ? body.replaceAll(apiKey, "[key]") : body);
  };
  return {
    id: options.id,
    complete: async (request, context) => {
      const body = await send("/chat/completions", toWireChat(request, options.dialect, false), context);
      return fromWireChat(body, request.model);
    },
    stream: (request, context) =>
      fromWireStream(async () => {
        const body = toWireChat(request, options.dialect, true);
        const answer = await transport.open(toCall("/chat/completions", body, context));
        if (answer.status >= 200 && answer.status < 300) return answer;
        throw toError(answer, await readError(answer.chunks), context);
      }),
    embed: async (request, context) =>
      fromWireEmbeddings(await send("/embeddings", toWireEmbeddings(request), context), request),
    close: () => transport.close(),
  };
}

async function readError(chunks: AsyncIterable<Buffer>): Promise<string> {
  let text = "";
  for await (const chunk of chunks) {
    text += chunk.toString("utf8");
    if (text.length > MAX_ERROR_BYTES) break;
  }
  return text;
}
