import { toEmbeddingList, toEmbedRequest } from "../../src/gateway/embed.ts";
import { embeddingsBodySchema, embeddingsResponseSchema } from "../../src/gateway/embeddings-schemas.ts";
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
      const outcome = await platform.gateway.embed(toGatewayCaller(input, surface), await toEmbedRequest(body));
      const { costUsd, logId } = outcome;
      return { ...toEmbeddingList(outcome, body.encoding_format), costUsd, logId };
    },
  });

/** Both paths give the same response: the interface's shape is OpenAI's. */
export const embeddingRoutes = [embeddingsRoute("/ai/embeddings", "Gateway")];
export const openAiEmbeddingRoutes = [embeddingsRoute("/v1/embeddings", "OpenAI-compatible", "openai")];
