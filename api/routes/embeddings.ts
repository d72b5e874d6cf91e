import { toEmbedRequest } from "../../src/gateway/embed.ts";
import { embeddingsBodySchema, embeddingsResponseSchema } from "../../src/gateway/schemas.ts";
import { declareRoutes } from "../route.ts";
import { modelCallErrors, toGatewayCaller } from "./chat.ts";

const embeddingsRoute = (path: string, tag: string, surface?: string) =>
  declareRoutes({ auth: "member", tags: [tag] }).post(path, {
    summary: "Embed texts",
    description: "The response is OpenAI's list; `base64` holds little-endian float32 and is half the size.",
    body: embeddingsBodySchema,
    headers: { "x-svc-surface": "Tags the source of the request for analytics" },
    responses: { 200: { description: "One vector for each input, in order", body: embeddingsResponseSchema } },
    errors: modelCallErrors,
    example: { input: ["a job", "a lease"] },
    async result(input) {
      const { body, platform } = input;
      const outcome = await platform.gateway.embed(toGatewayCaller(input, surface), toEmbedRequest(body));
      const { embeddings, model, inputTokens, costUsd, logId } = outcome;
      const toWire = body.encoding_format === "base64" ? toBase64 : toNumbers;
      return {
        object: "list",
        data: embeddings.map((vector, index) => ({ object: "embedding", index, embedding: toWire(vector) })),
        model,
        usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
        costUsd,
        logId,
      };
    },
  });

const toNumbers = (vector: Float32Array) => Array.from(vector);
const toBase64 = (vector: Float32Array) =>
  Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("base64");

/** Both paths give the same response: the interface's shape is OpenAI's. */
export const embeddingRoutes = [embeddingsRoute("/ai/embeddings", "Gateway")];
export const openAiEmbeddingRoutes = [embeddingsRoute("/v1/embeddings", "OpenAI-compatible", "openai")];
