import type { Connection } from "../../resilience/transport.ts";
import { makeResponsesProvider } from "../openai-responses/provider.ts";
import type { WireDialect } from "../openai-wire/chat.ts";
import { bearer, makeWireProvider } from "../openai-wire/provider.ts";
import type { CompletionRequest, KeyedProvider, Provider } from "../provider.ts";
import { makeOpenAiBatches } from "./batches.ts";
import { needsResponses, offeredModels } from "./choose-wire.ts";

/** Its reasoning models take the token limit by its newer name alone. */
const dialect: WireDialect = { maxTokensField: "max_completion_tokens" };

/** OpenAI, with the key that each call brings. */
export const openAi: KeyedProvider = {
  models: offeredModels,
  keys: {
    fits: /^sk-(?!ant-)/, // Anthropic's keys begin with sk- too
    form: "must begin with sk-, as OpenAI's keys do",
    // https://platform.openai.com/docs/api-reference/models/list
    toCheck: (apiKey) => ({ path: "/models", headers: bearer(apiKey) }),
  },
  open: openOpenAi,
};

function openOpenAi(connection: Connection): Provider {
  const chat = makeWireProvider({ ...connection, apiKey: undefined, dialect });
  const responses = makeResponsesProvider(connection);
  const wireFor = (request: CompletionRequest) => (needsResponses(request) ? responses : chat);
  return {
    complete: (request, context) => wireFor(request).complete(request, context),
    stream: (request, context) => wireFor(request).stream(request, context),
    embed: chat.embed,
    batches: makeOpenAiBatches(connection.baseUrl, dialect),
    close: async () => {
      await Promise.all([chat.close(), responses.close()]);
    },
  };
}
