import type { Config } from "../../../config.ts";
import type { WireDialect } from "../openai-wire/chat.ts";
import { makeWireProvider } from "../openai-wire/provider.ts";
import type { Provider } from "../provider.ts";
import { makeOpenAiBatches } from "./batches.ts";

/** OpenAI, with the key that each call brings. Its reasoning models take the token limit by its newer name alone. */
export function makeOpenAiProvider({ openai, timeouts }: Pick<Config["gateway"], "openai" | "timeouts">): Provider {
  const { baseUrl } = openai;
  const dialect: WireDialect = { maxTokensField: "max_completion_tokens" };
  return {
    ...makeWireProvider({ id: "openai", baseUrl, apiKey: undefined, dialect, timeouts }),
    batches: makeOpenAiBatches(baseUrl, dialect),
  };
}
