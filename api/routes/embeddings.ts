import { toEmbeddingList, toEmbedRequest } from "../../src/gateway/embed.ts";
import { embeddingsBodySchema, embeddingsResponseSchema } from "../../src/gateway/embeddings-schemas.ts";
import { declareRoutes } from "../route.ts";
import { modelCallErrors, toGatewayCaller } from "./chat.ts";

/** Dimensions of most models, for a request that names none. */
const COMMON_DIMENSIONS = 1_536;
/** Vectors up to this size need no memory to be set aside, in bytes. */
const SMALL_BYTES = 256 << 10;
/** A response of more numbers is written vector by vector, and not kept for repeats: its JSON has some 20 bytes for each. */
const MAX_NUMBERS_AT_ONCE = 400_000;

type List = ReturnType<typeof toEmbeddingList>;

/** The JSON of a list, of which one vector at a time is a text. */
function* toJsonPieces(
  embeddings: readonly Float32Array[],
  toList: (embeddings: Float32Array[]) => List,
): Generator<Buffer> {
  const [head, tail] = JSON.stringify(toList([])).split('"data":[]');
  let before = `${head}"data":[`;
  for (const [index, vector] of embeddings.entries()) {
    const [item] = toList([vector]).data;
    yield Buffer.from(before + JSON.stringify({ ...item, index }));
    before = ",";
  }
  yield Buffer.from(`]${tail}`);
}

const embeddingsRoute = (path: string, tag: string, surface?: string) =>
  declareRoutes({ auth: "member", tags: [tag] }).post(path, {
    summary: "Embed texts",
    description: "The response is OpenAI's list; `base64` holds little-endian float32 and is half the size.",
    body: embeddingsBodySchema,
    headers: { "x-svc-surface": "Tags the source of the request for analytics" },
    responses: { 200: { description: "One vector for each input, in order", body: embeddingsResponseSchema } },
    errors: modelCallErrors,
    example: { input: ["a job", "a lease"] },
    async handler(input) {
      const { body, platform, reserve } = input;
      const request = await toEmbedRequest(body);
      const { length } = request.input;
      const vectorBytes = Float32Array.BYTES_PER_ELEMENT * length * (request.dimensions ?? COMMON_DIMENSIONS);
      if (vectorBytes > SMALL_BYTES) reserve(vectorBytes);
      const outcome = await platform.gateway.embed(toGatewayCaller(input, surface), request);
      const { costUsd, logId } = outcome;
      const numbers = length * (outcome.embeddings[0]?.length ?? 0);
      const list = (embeddings: Float32Array[]) => ({
        ...toEmbeddingList({ ...outcome, embeddings }, body.encoding_format),
        costUsd,
        logId,
      });
      if (numbers <= MAX_NUMBERS_AT_ONCE) return { status: 200, body: list(outcome.embeddings) };
      const headers = { "content-type": "application/json; charset=utf-8" };
      return { status: 200, headers, bytes: toJsonPieces(outcome.embeddings, list) };
    },
  });

/** Both paths give the same response: the interface's shape is OpenAI's. */
export const embeddingRoutes = [embeddingsRoute("/ai/embeddings", "Gateway")];
export const openAiEmbeddingRoutes = [embeddingsRoute("/v1/embeddings", "OpenAI-compatible", "openai")];
