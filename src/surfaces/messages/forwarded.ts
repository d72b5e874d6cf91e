import type { CataloguedModel } from "../../gateway/catalogue.ts";
import type { ForwardedChat } from "../../gateway/chat/forward.ts";
import type { ChatRequest } from "../../gateway/chat/request.ts";
import type { RawRequest } from "../../gateway/providers/provider.ts";
import { AppError } from "../../lib/errors.ts";
import { messagesBodySchema } from "./schemas.ts";
import { toChat } from "./to-chat.ts";
import { unknownFields } from "./unread-fields.ts";
import { unreadTokens } from "./unread-tokens.ts";

/** What is read of a body that is forwarded as it came. */
type ForwardableBody = { model: string; max_tokens?: unknown };

/** A request of the Messages API as it is forwarded to the provider of its model. */
export function toForwarded(model: CataloguedModel, body: ForwardableBody, raw: RawRequest): ForwardedChat {
  const { model: requested, max_tokens: limit } = body;
  const maxTokens = typeof limit === "number" && Number.isInteger(limit) && limit > 0 ? limit : undefined;
  const unknown = unknownFields(body);
  const chat = toCountable(body);
  const unread = unreadTokens({ ...body }, raw.body, chat && unknown);
  return { model, requested, raw, chat, unreadTokens: unread, maxTokens };
}

/** The headers of a request that are its provider's alone to read. */
export function toForwardedHeaders(header: (name: string) => string | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of ["anthropic-version", "anthropic-beta"]) {
    const value = header(name);
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

/** What a body says, but for fields that nobody knows, to count it by; undefined where not all else of it can be read. */
function toCountable(body: object): ChatRequest | undefined {
  const parsed = messagesBodySchema.safeParse(body);
  if (!parsed.success) return undefined;
  try {
    const { request, ignored } = toChat(parsed.data);
    return ignored.length === 0 ? request : undefined;
  } catch (error) {
    if (error instanceof AppError) return undefined; // its provider says what is wrong
    throw error;
  }
}
