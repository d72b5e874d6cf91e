import { once } from "node:events";
import { createServer } from "node:http";
import { embedOffline } from "../../src/gateway/providers/edge/offline-embed.ts";

/** A request that the server answered, with the texts that it embedded. */
export type EmbeddedTexts = { model: string; texts: string[] };

export type EmbeddingServer = {
  /** What an OpenAI client takes as base URL. */
  url: string;
  /** What was answered whole, in order. */
  answered: EmbeddedTexts[];
  /** Texts of a model that was answered: each occurrence. */
  textsOf(model: string): string[];
  /** Called before each answer: a status refuses the request, a promise delays its answer. */
  onRequest(hook: (request: EmbeddedTexts) => Promise<void> | number | undefined): void;
  close(): Promise<void>;
};

/**
 * OpenAI's embeddings on loopback. The name of a model ends with the length of its vectors, as `dense-1024`; what one model
 * says of a text has nothing to do with what another one says of it. Each text costs one token a word.
 */
export async function startEmbeddingServer(): Promise<EmbeddingServer> {
  const answered: EmbeddedTexts[] = [];
  let hook: (request: EmbeddedTexts) => Promise<void> | number | undefined = () => undefined;
  const server = createServer(async (request, response) => {
    const bytes = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
    const { model, input } = JSON.parse(bytes.toString("utf8")) as { model: string; input: string | string[] };
    const texts = [input].flat();
    const held = hook({ model, texts });
    if (typeof held === "number") {
      response.writeHead(held, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: "refused by the test", type: "test" } }));
      return;
    }
    await held;
    if (response.destroyed) return; // who asked is gone
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(toList(model, texts)), () => answered.push({ model, texts }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the embedding server has no port");
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    answered,
    textsOf: (model) => answered.flatMap((one) => (one.model === model ? one.texts : [])),
    onRequest: (given) => {
      hook = given;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** What `PUT /ai/providers/custom/:name` takes to make models of such a server a provider of the tenant's own. */
export const toCustomProvider = ({ url }: Pick<EmbeddingServer, "url">, models: readonly string[]) => ({
  baseUrl: url,
  key: "sk-of-the-lab",
  wire: "openai-chat",
  models: models.map((id) => ({
    id,
    type: "embedding",
    contextWindow: 8_192,
    inputUsdPerMTok: 1,
    outputUsdPerMTok: 0,
  })),
});

/** What texts cost. */
export const tokensOf = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.split(/\s+/).length, 0);

function toList(model: string, texts: readonly string[]) {
  const data = embedLike(model, texts).map((vector, index) => ({
    object: "embedding",
    index,
    embedding: Buffer.from(vector.buffer).toString("base64"),
  }));
  const tokens = tokensOf(texts);
  return { object: "list", data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

/** Vectors that are near for texts that share words; each model has a direction of its own for the same feature. */
function embedLike(model: string, texts: readonly string[]): Float32Array[] {
  const dimensions = Number(/\d+$/.exec(model)?.[0] ?? 256);
  const turn = [...model].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % dimensions;
  return embedOffline(texts, dimensions).map((vector) =>
    Float32Array.from(vector, (_, at) => vector[(at + turn) % dimensions] ?? 0),
  );
}
