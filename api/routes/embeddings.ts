import { embeddingsBodySchema, embeddingsResponseSchema } from "../../src/gateway/schemas.ts";
import { type AnyRoute, route } from "../route.ts";
import { toGatewayCaller } from "./chat.ts";

const createEmbeddings = route({
  method: "post",
  path: "/ai/embeddings",
  auth: "member",
  tags: ["Gateway"],
  summary: "Embed texts",
  description: "The answer is OpenAI's list; `base64` holds little-endian float32 and is half the size.",
  body: embeddingsBodySchema,
  headers: { "x-svc-surface": "Tags the source of the request for analytics" },
  responses: { 200: { description: "One vector for each input, in order", body: embeddingsResponseSchema } },
  errors: [
    "unknown_model",
    "provider_not_configured",
    "provider_key_refused",
    "provider_failed",
    "provider_rate_limited",
    "provider_timeout",
  ],
  example: { input: ["a job", "a lease"] },
  async handler(input) {
    const { body, platform } = input;
    const outcome = await platform.gateway.embed(toGatewayCaller(input), {
      input: typeof body.input === "string" ? [body.input] : body.input,
      ...(body.model === undefined ? {} : { model: body.model }),
      ...(body.dimensions === undefined ? {} : { dimensions: body.dimensions }),
    });
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

export const embeddingRoutes: readonly AnyRoute[] = [createEmbeddings];
