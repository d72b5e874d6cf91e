import type { CataloguedModel } from "../../gateway/catalogue.ts";
import type { ForwardedChat } from "../../gateway/chat/forward.ts";
import type { ChatRequest } from "../../gateway/chat/request.ts";
import type { RawRequest } from "../../gateway/providers/provider.ts";
import { AppError } from "../../lib/errors.ts";
import { messagesBodySchema } from "./schemas.ts";
import { toChat } from "./to-chat.ts";
import { unknownFields } from "./unread-fields.ts";

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

/** What a provider adds to a prompt for the tools of its own that a client runs, in tokens. */
const TOKENS_OF_OWN_TOOLS = 4_096;
/** Most values of a body that are looked at. */
const MAX_VISITED = 200_000;
/** Top-level fields that name contents which are not in the body. */
const elsewhere = ["container", "conversation", "mcp_servers", "previous_response_id", "thread"];
/** Tools that the provider has written and a client runs: they bring in nothing that is not in a later body. */
const clientTools = /^(custom$|bash_|computer_|memory_|text_editor_)/;

type Fields = Readonly<Record<string, unknown>>;
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The most tokens that a body, as it came, has in the parts of it that are not read: every token has a byte at least. Undefined
 * where bytes say nothing: the body names contents that are elsewhere, or holds pictures and documents that nobody has read.
 * @param unknown the top-level fields that are not read, where all else is; undefined: nothing is.
 */
function unreadTokens(body: Fields, text: string, unknown: readonly string[] | undefined): number | undefined {
  if (namesElsewhere(body)) return undefined;
  if (unknown) return bytesOf(JSON.stringify(Object.fromEntries(unknown.map((name) => [name, body[name]]))));
  return hasMedia(body) ? undefined : bytesOf(text) + TOKENS_OF_OWN_TOOLS;
}

const bytesOf = (text: string) => Buffer.byteLength(text, "utf8");

function namesElsewhere(body: Fields): boolean {
  if (elsewhere.some((name) => (body[name] ?? null) !== null)) return true;
  const tools = Array.isArray(body.tools) ? body.tools : [];
  const isOurs = (tool: unknown) => !isFields(tool) || tool.type === undefined || clientTools.test(String(tool.type));
  return (
    !tools.every(isOurs) || someBlock(body, (block) => block.type === "container_upload" || isRemote(block.source))
  );
}

const isRemote = (source: unknown) => isFields(source) && (source.type === "url" || source.type === "file");

const hasMedia = (body: Fields) => someBlock(body, ({ type }) => type === "image" || type === "document");

/** Whether one of the blocks of a body's messages and instructions, at any depth, is such. What is too large is. */
function someBlock(body: Fields, test: (block: Fields) => boolean): boolean {
  const left: unknown[] = [body.system, body.messages];
  for (let visited = 0; left.length > 0; visited += 1) {
    if (visited > MAX_VISITED) return true;
    const value = left.pop();
    if (Array.isArray(value)) left.push(...value);
    if (!isFields(value)) continue;
    if (test(value)) return true;
    left.push(value.content); // not the input of a tool, which may have fields of any name
  }
  return false;
}
