import { setImmediate } from "node:timers/promises";
import { inSlices } from "../../../lib/in-slices.ts";
import type { TransportTimeouts } from "../../resilience/transport.ts";
import { estimateTokens } from "../../tokens.ts";
import { makeWireProvider } from "../openai-wire/provider.ts";
import type { EmbeddingRequest, EmbeddingResult, Provider } from "../provider.ts";
import type { EdgeSettings } from "./models.ts";
import { completingOffline, toParts } from "./offline-chat.ts";
import { embedOffline, offlineEmbeddingModelId } from "./offline-embed.ts";

/** Texts between two turns of the event loop: some milliseconds of work. */
const EMBEDDED_AT_ONCE = 8;

/** The OpenAI-compatible server at `edge.baseUrl`; the offline model for what that does not do: embeddings, or all. */
export function openEdge({ edge, timeouts }: { edge: EdgeSettings; timeouts: TransportTimeouts }): Provider {
  const batches = "own-workers";
  if (edge.baseUrl === undefined) {
    return {
      complete: async (request, { signal }) => inSlices(completingOffline(request), signal),
      stream: async function* (request, { signal }) {
        for (const parts of toParts(await inSlices(completingOffline(request), signal))) {
          yield parts;
          await setImmediate(); // the words come without a pause: let others have their turn between them
        }
      },
      embed: embedWithoutServer,
      batches,
    };
  }
  const server = makeWireProvider({
    baseUrl: edge.baseUrl,
    apiKey: edge.apiKey,
    dialect: { maxTokensField: "max_tokens", hasReasoningDetails: true },
    timeouts,
  });
  return {
    ...server,
    batches,
    embed: (request, context) =>
      request.model === offlineEmbeddingModelId ? embedWithoutServer(request) : server.embed(request, context),
  };
}

async function embedWithoutServer({ input, dimensions }: EmbeddingRequest): Promise<EmbeddingResult> {
  const embeddings: Float32Array[] = [];
  let inputTokens = 0;
  for (const text of input) {
    if (embeddings.length % EMBEDDED_AT_ONCE === EMBEDDED_AT_ONCE - 1) await setImmediate(); // others have their turn
    inputTokens += estimateTokens(text);
    embeddings.push(...embedOffline([text], dimensions));
  }
  return {
    embeddings,
    usage: { inputTokens },
    model: offlineEmbeddingModelId,
  };
}
