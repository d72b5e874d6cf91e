import { setImmediate } from "node:timers/promises";
import { estimateTokens } from "../../count-tokens.ts";
import type { TransportTimeouts } from "../../resilience/transport.ts";
import { makeWireProvider } from "../openai-wire/provider.ts";
import type { EmbeddingRequest, EmbeddingResult, Provider } from "../provider.ts";
import type { EdgeSettings } from "./models.ts";
import { completeOffline, streamOffline } from "./offline-chat.ts";
import { embedOffline, offlineEmbeddingModelId } from "./offline-embed.ts";

/** The OpenAI-compatible server at `edge.baseUrl`; the offline model for what that does not do: embeddings, or all. */
export function openEdge({ edge, timeouts }: { edge: EdgeSettings; timeouts: TransportTimeouts }): Provider {
  const batches = "own-workers";
  if (edge.baseUrl === undefined) {
    return {
      complete: async (request) => completeOffline(request),
      stream: async function* (request) {
        for (const parts of streamOffline(request)) {
          yield parts;
          await setImmediate(); // the words come without a pause: let others have their turn between them
        }
      },
      embed: async (request) => embedWithoutServer(request),
      batches,
    };
  }
  const server = makeWireProvider({
    baseUrl: edge.baseUrl,
    apiKey: edge.apiKey,
    dialect: { maxTokensField: "max_tokens" },
    timeouts,
  });
  return {
    ...server,
    batches,
    embed: (request, context) =>
      request.model === offlineEmbeddingModelId
        ? Promise.resolve(embedWithoutServer(request))
        : server.embed(request, context),
  };
}

function embedWithoutServer(request: EmbeddingRequest): EmbeddingResult {
  const inputTokens = request.input.reduce((sum, text) => sum + estimateTokens(text), 0);
  return {
    embeddings: embedOffline(request.input, request.dimensions),
    usage: { inputTokens },
    model: offlineEmbeddingModelId,
  };
}
