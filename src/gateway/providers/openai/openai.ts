import type { WireDialect } from "../openai-wire/chat.ts";
import { bearer, makeWireProvider } from "../openai-wire/provider.ts";
import type { KeyedProvider } from "../provider.ts";
import { makeOpenAiBatches } from "./batches.ts";
import { openAiModels } from "./models.ts";

/** Its reasoning models take the token limit by its newer name alone. */
const dialect: WireDialect = { maxTokensField: "max_completion_tokens" };

/** OpenAI, with the key that each call brings. */
export const openAi: KeyedProvider = {
  name: "OpenAI",
  baseUrl: "https://api.openai.com/v1",
  models: openAiModels,
  keys: {
    fits: /^sk-(?!ant-)/, // Anthropic's keys begin with sk- too
    form: "must begin with sk-, as OpenAI's keys do",
    // https://platform.openai.com/docs/api-reference/models/list
    toCheck: (apiKey) => ({ path: "/models", headers: bearer(apiKey) }),
  },
  open: ({ baseUrl, timeouts }) => ({
    ...makeWireProvider({ baseUrl, apiKey: undefined, dialect, timeouts }),
    batches: makeOpenAiBatches(baseUrl, dialect),
  }),
};
