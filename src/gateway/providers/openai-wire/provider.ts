import type { Connection } from "../../resilience/transport.ts";
import {
  type CallContext,
  type CompletionRequest,
  MAX_ANSWER_BYTES,
  type Provider,
  type ToHeaders,
} from "../provider.ts";
import { makeWireClient } from "../wire-client.ts";
import { toWireChat, type WireDialect } from "./chat.ts";
import { fromWireChat, measureWireChat } from "./completion.ts";
import { fromWireEmbeddings, measureWireEmbeddings, toWireEmbeddings } from "./embed.ts";
import { fromWireRerank, measureWireRerank, toWireRerank } from "./rerank.ts";
import { makeChunkReader } from "./stream.ts";

/** `baseUrl` is as OpenAI's clients take it: the part before `/chat/completions`. */
type WireProviderOptions = Connection & {
  /** The platform's key for calls that bring none. */
  apiKey: string | undefined;
  dialect: WireDialect;
};

/** With room for the probabilities of tokens, which take many times the bytes of their text. */
const withRoom = ({ logprobs }: CompletionRequest, context: CallContext): CallContext =>
  logprobs && context.maxAnswerBytes !== undefined ? { ...context, maxAnswerBytes: MAX_ANSWER_BYTES } : context;

/** The header that carries a key. */
export const bearer: ToHeaders = (key) => (key === undefined ? {} : { authorization: `Bearer ${key}` });

/** A provider for any server that speaks OpenAI's wire format. */
export function makeWireProvider(options: WireProviderOptions): Required<Omit<Provider, "batches" | "forward">> {
  const { dialect, ...connection } = options;
  const client = makeWireClient({ ...connection, toHeaders: bearer });
  const readerOf = ({ model, tools }: CompletionRequest) => ({
    read: (body: string) => fromWireChat(body, model, tools),
    measure: measureWireChat,
    isSlow: true,
  });
  return {
    complete: (request, context) =>
      client.send(
        "/chat/completions",
        toWireChat(request, dialect, false),
        withRoom(request, context),
        readerOf(request),
      ),
    stream: (request, context) =>
      client.stream("/chat/completions", toWireChat(request, dialect, true), context, {
        ...makeChunkReader(request.tools),
        readWhole: readerOf(request).read,
      }),
    embed: (request, context) => {
      const reader = { read: (body: string) => fromWireEmbeddings(body, request), measure: measureWireEmbeddings };
      return client.send("/embeddings", toWireEmbeddings(request), context, reader);
    },
    rerank: (request, context) => {
      const reader = { read: (body: string) => fromWireRerank(body, request), measure: measureWireRerank };
      return client.send("/rerank", toWireRerank(request), context, reader);
    },
    close: () => client.close(),
  };
}
