import { reasoningDetailSchema } from "../../gateway/message-schemas.ts";
import type { ReasoningPart } from "../../gateway/messages.ts";
import { invalidRequest } from "../../lib/errors.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";

/** How the text begins that holds an item of reasoning. What begins otherwise was made elsewhere. */
const HEAD = "svc1.";

const sealed = reasoningDetailSchema.pick({ provider: true, item: true });

/**
 * An item of reasoning as the text of `encrypted_content`, which clients send back as it is: the provider that made it, and
 * the item byte for byte. Items of a stream have our ids from their beginning, and OpenAI refuses its reasoning under another
 * id, so that its items are kept like this too.
 */
export function sealReasoning({ provider, item }: Omit<ReasoningPart, "type">): string {
  return HEAD + Buffer.from(JSON.stringify({ provider, item })).toString("base64url");
}

/**
 * The reasoning that a text holds; undefined for a text that was made elsewhere.
 * @throws AppError `invalid_request` for `param` that is no item of reasoning.
 */
export function openReasoning(text: string, param: string): ReasoningPart | undefined {
  if (!text.startsWith(HEAD)) return undefined;
  const json = Buffer.from(text.slice(HEAD.length), "base64url").toString();
  const parsed = sealed.safeParse(tryParseJson(json));
  if (parsed.success) return { type: "reasoning", ...parsed.data };
  throw invalidRequest(param, `${param} is not what a response had.`);
}
