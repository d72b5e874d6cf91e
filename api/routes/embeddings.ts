import { toEmbedRequest } from "../../src/gateway/embed.ts";
import { embeddingsBodySchema, embeddingsResponseSchema } from "../../src/gateway/schemas.ts";
import { type AnyRoute, route } from "../route.ts";
import { modelCallErrors, toGatewayCaller } from "./chat.ts";

const createEmbeddings = (path: string, tag: string, surface?: string) =>
  route({
    method: "post",
    path,
    auth: "member",
    tags: [tag],
    summary: "Embed texts",
    description: "The answer is OpenAI's list; `base64` holds little-endian float32 and is half the size.",
    body: embeddingsBodySchema,
    headers: { "x-svc-surface": "Tags the source of the request for analytics" },
    responses: { 200: { description: "One vector for each input, in order", body: embeddingsResponseSchema } },
    errors: modelCallErrors,
    example: { input: ["a job", "a lease"] },
    async handler(input) {
      const { body, platform } = input;
      const outcome = await platform.gateway.embed(toGatewayCaller(input, surface), toEmbedRequest(body));
      const toWire = body.encoding_format === "base64" ? toBase64 : toNumbers;
      return {
        status: 200,
        body: {
          object: "list",
          data: outcome.embeddings.map((vector, index) => ({ object: "embedding", index, embedding: toWire(vector) })),
          model: outcome.model,
          usage: { prompt_tokens: outcome.inputTokens, total_tokens: outcome.inputTokens },
          costUsd: outcome.costUsd,
          logId: outcome.logId,
        },
      };
    },
  });

const toNumbers = (vector: Float32Array) => Array.from(vector);
const toBase64 = (vector: Float32Array) =>
  Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("base64");

/** The same answer at both paths: the interface's is OpenAI's. */
export const embeddingRoutes: readonly AnyRoute[] = [createEmbeddings("/ai/embeddings", "Gateway")];
export const openAiEmbeddingRoutes: readonly AnyRoute[] = [
  createEmbeddings("/v1/embeddings", "OpenAI-compatible", "openai"),
];
