import type { Config } from "../../../config.ts";
import { makeWireProvider } from "../openai-wire/provider.ts";
import type { Provider } from "../provider.ts";

/** OpenAI, with the key that each call brings. Its reasoning models take the token limit by its newer name alone. */
export function makeOpenAiProvider({ openai, timeouts }: Pick<Config["gateway"], "openai" | "timeouts">): Provider {
  return makeWireProvider({
    id: "openai",
    baseUrl: openai.baseUrl,
    apiKey: undefined,
    dialect: { maxTokensField: "max_completion_tokens" },
    timeouts,
  });
}
