import { countMedia, MAX_MEDIA } from "../../../gateway/message-schemas.ts";
import { AppError, invalidRequest } from "../../../lib/errors.ts";
import type { ConversationStore } from "../../../store/conversation-store.ts";
import type { ResponseStore, ResponseText, StoredResponse } from "../../../store/response-store.ts";
import { type InputItem, MAX_ITEMS, type ResponsesBody } from "../request-schemas.ts";
import type { OutputItem } from "../response-schemas.ts";
import { findPlace, isItemOf, isKept, type KeptItem, toInputItemId } from "./item-ids.ts";
import type { Referred } from "./own-only.ts";
import { readItem, readItems } from "./records.ts";

/** The conversation that a request is about. */
export type Conversation = {
  /** The items of the conversation and of the responses before it, in their order. */
  before: readonly InputItem[];
  /** Those of its own input, with what it refers to in the places of the references; or its text. */
  input: string | readonly InputItem[];
  /** The responses before it, from the first one on, and the items and bytes that they have. */
  chain: readonly string[];
  /** The conversation before them; one without a chain joins it. */
  conversationId?: string | undefined;
  total: StoredResponse["total"];
};

type Asked = Pick<ResponsesBody, "input" | "previous_response_id" | "conversation">;

/** Where what is recalled is kept. */
export type RecallStore = { responses: ResponseStore; conversations: ConversationStore };
/** What recalls work with. `maxBytes`: of a conversation; `reserve` sets memory aside for it until the call is over. */
type RecallDeps = { store: RecallStore; maxBytes: number };
type Recall = { tenantId: string; body: Asked; reserve(bytes: number): void };

/** The items of an input; a text is one message. */
export function toItems(input: Conversation["input"]): readonly InputItem[] {
  return typeof input === "string" ? [{ type: "message", role: "user", content: input }] : input;
}

/** Whether a request is about something that was stored. */
export function refersToStored({ input, previous_response_id: previous, conversation }: Asked): boolean {
  if ((previous ?? conversation ?? undefined) !== undefined) return true;
  return typeof input !== "string" && input.some((item) => refersTo(item) !== undefined);
}

/** The conversation of a request that refers to nothing. */
export const newConversation = ({ input }: Asked): Conversation => ({ ...nothing, input });

type Reference = Extract<InputItem, { type: "item_reference" }>;
const isReference = (item: InputItem): item is Reference => item.type === "item_reference";
/** The id of the stored item that an item stands for: a reference, or reasoning whose content its client was not given. */
const refersTo = (item: InputItem): string | undefined =>
  isReference(item) || (item.type === "reasoning" && !item.encrypted_content) ? (item.id ?? undefined) : undefined;

/**
 * The conversation of a request that refers to stored responses of its tenant. It may have as many items and pictures as a
 * request that sends all of it, and what is stored of it as many bytes.
 * @throws AppError `not_found` for what is not stored; `invalid_request` beyond the bounds; `wrong_state` for a response that
 * has not ended; what `reserve` throws.
 */
export async function recall(
  { store, maxBytes }: RecallDeps,
  { tenantId, body, reserve }: Recall,
): Promise<Conversation> {
  const allowance = makeAllowance(maxBytes, reserve);
  const previousId = body.previous_response_id ?? undefined;
  const conversationId = body.conversation ?? undefined;
  if (previousId !== undefined && conversationId !== undefined)
    throw invalidRequest("conversation", "conversation and previous_response_id exclude each other.");
  const past =
    conversationId === undefined
      ? previousId === undefined
        ? nothing
        : await readChain(store, { tenantId, previousId, allowance })
      : await readConversation(store, { tenantId, conversationId, allowance });
  const items = await resolveReferences(store.responses, { tenantId, items: toItems(body.input), allowance });
  const all = [...past.before, ...items];
  const param = conversationId ? "conversation" : previousId === undefined ? "input" : "previous_response_id";
  if (all.length > MAX_ITEMS) throw tooLong(param, `${MAX_ITEMS} items`);
  if (countMedia(all) > MAX_MEDIA) throw tooLong(param, `${MAX_MEDIA} pictures and files`);
  return { ...past, input: typeof body.input === "string" ? body.input : items };
}

const nothing = { before: [], chain: [], total: { items: 0, bytes: 0 } };

type Allowance = ReturnType<typeof makeAllowance>;

/** The bytes that a conversation may have. */
function makeAllowance(maxBytes: number, reserve: (bytes: number) => void) {
  let taken = 0;
  const check = (bytes: number, param: string) => {
    if (bytes > maxBytes) throw tooLong(param, `${maxBytes} bytes (MAX_JSON_BYTES)`);
  };
  return {
    /** Makes room for what is to be read. */
    read(bytes: number, param: string): void {
      check(bytes, param);
      reserve(bytes);
    },
    /** Counts what the conversation has. */
    take(bytes: number, param: string): void {
      taken += bytes;
      check(taken, param);
    },
  };
}

function tooLong(param: string, most: string): AppError {
  const advice = "Begin a new one, with what matters of it as input.";
  return invalidRequest(param, `${param}: the conversation would have more than ${most}. ${advice}`);
}

/** The items of a conversation that a request joins. */
async function readConversation(
  store: RecallStore,
  { tenantId, conversationId, allowance }: { tenantId: string; conversationId: string; allowance: Allowance },
): Promise<Omit<Conversation, "input">> {
  const param = "conversation";
  const about = await store.conversations.about(tenantId, conversationId);
  if (about === null) throw missingConversation(conversationId, param);
  allowance.take(about.bytes, param);
  allowance.read(about.bytes, param);
  const before = await readJoined(store, tenantId, { conversationId, chain: [] });
  return { before, chain: [], conversationId, total: { items: before.length, bytes: about.bytes } };
}

function missingConversation(id: string, param: string): AppError {
  const message = `${param}: there is no conversation ${id}. It has expired or was deleted.`;
  return new AppError("not_found", message, { param });
}

/** The items of a conversation before those of a response, the first of a chain or `own`. */
async function readJoined(
  { conversations }: RecallStore,
  tenantId: string,
  { conversationId, chain, own }: Past,
): Promise<InputItem[]> {
  if (conversationId === undefined) return [];
  const record = await conversations.get(tenantId, conversationId);
  if (record === null)
    throw missingConversation(conversationId, chain.length ? "previous_response_id" : "conversation");
  const joined = chain[0] ?? own;
  const end = joined === undefined ? -1 : record.items.findIndex(({ id }) => isItemOf(joined, id));
  const items = end < 0 ? record.items : record.items.slice(0, end);
  return items.map(({ text }) => toInputItem(readItem(text)));
}

/** What stands before a response. `own` is its id, where it may have joined its conversation already. */
type Past = { chain: readonly string[]; conversationId?: string | undefined; own?: string };

async function readChain(
  store: RecallStore,
  { tenantId, previousId, allowance }: { tenantId: string; previousId: string; allowance: Allowance },
): Promise<Omit<Conversation, "input">> {
  const param = "previous_response_id";
  const previous = await store.responses.about(tenantId, previousId);
  if (previous === null) throw missing(previousId);
  const { total } = previous;
  if (total.items > MAX_ITEMS) throw tooLong(param, `${MAX_ITEMS} items`);
  allowance.take(total.bytes, param);
  allowance.read(total.bytes, param);
  if (previous.isOpen) throw new AppError("wrong_state", `${param}: the response has not ended.`, { param });
  const { conversationId } = previous;
  const chain = [...previous.chain, previousId];
  return { before: await readBefore(store, tenantId, { chain, conversationId }), chain, conversationId, total };
}

/** The items before a response, in their order. @throws AppError `not_found`. */
export async function readBefore(store: RecallStore, tenantId: string, past: Past): Promise<InputItem[]> {
  const joined = await readJoined(store, tenantId, past);
  const { chain } = past;
  if (chain.length === 0) return joined;
  const texts = await store.responses.texts(tenantId, chain, ["input", "output"]);
  const items = chain.flatMap((id) => {
    const found = texts.get(id);
    if (found === undefined) throw missing(id);
    return [...readItems(found.input), ...readItems(found.output)].map(toInputItem);
  });
  return [...joined, ...items];
}

function missing(id: string): AppError {
  const param = "previous_response_id";
  const message = `${param}: there is no response ${id}. It was not stored, has expired or was deleted.`;
  return new AppError("not_found", message, { param });
}

/** An item as a model is given it: what an agent did by itself is no part of a conversation. */
export const toInputItem = (item: KeptItem | OutputItem): InputItem =>
  item.type === "mcp_call" || item.type === "mcp_approval_request" ? { type: "other" } : item;

/** The responses and conversations that a request refers to. */
export function referredBy({ input, previous_response_id: previous, conversation }: Asked): Referred {
  const places = typeof input === "string" ? [] : input.flatMap((item) => refersTo(item) ?? []).map(findPlace);
  const responses = new Set([...places.flatMap((place) => place?.responseId ?? []), ...(previous ? [previous] : [])]);
  return { responses: [...responses], conversations: conversation ? [conversation] : [] };
}

/** The items, with what they refer to in the places of the references. An item counts as often as it is referred to. */
async function resolveReferences(
  store: ResponseStore,
  { tenantId, items, allowance }: { tenantId: string; items: readonly InputItem[]; allowance: Allowance },
): Promise<readonly InputItem[]> {
  const ids = new Set(items.flatMap((item) => refersTo(item) ?? []));
  if (ids.size === 0) return items;
  const known = new Map<string, { item: InputItem; bytes: number }>();
  for (const text of ["output", "input"] as const) {
    for (const [id, item] of await findItems(store, { tenantId, ids, text, allowance })) {
      known.set(id, { item, bytes: JSON.stringify(item).length });
    }
  }
  return items.map((item, place) => {
    const id = refersTo(item);
    if (id === undefined) return item;
    const found = known.get(id);
    if (found === undefined && !isReference(item)) return item; // it was made elsewhere, and is named as such
    const param = `input[${place}]`;
    if (found === undefined) {
      const message = `${param}: there is no item ${id}. Its response was not stored, has expired or was deleted.`;
      throw new AppError("not_found", message, { param });
    }
    allowance.take(found.bytes, "input");
    return found.item;
  });
}

/** The items of one kind of texts that ids stand for, by their ids. */
async function findItems(
  store: ResponseStore,
  { tenantId, ids, text, allowance }: { tenantId: string; ids: Set<string>; text: ResponseText; allowance: Allowance },
): Promise<Map<string, InputItem>> {
  const places = [...ids].map(findPlace).filter((place) => place?.text === text);
  const responseIds = [...new Set(places.flatMap((place) => place?.responseId ?? []))];
  const items = new Map<string, InputItem>();
  if (responseIds.length === 0) return items;
  allowance.read(await store.sumBytes(tenantId, responseIds, text), "input");
  for (const [responseId, record] of await store.texts(tenantId, responseIds, [text])) {
    for (const [place, item] of readItems(record[text]).entries()) {
      const id = text === "output" && "id" in item && item.id ? item.id : toInputItemId(responseId, item, place);
      if (ids.has(id)) items.set(id, toInputItem(item));
    }
  }
  return items;
}

/** The items of an input that say something, as they are stored. */
export const keptItems = (input: Conversation["input"]): KeptItem[] => toItems(input).filter(isKept);

/** The items that hold tools, which only the response itself is asked with. */
export const toolItems = (input: Conversation["input"]): InputItem[] =>
  toItems(input).filter(({ type }) => type === "additional_tools");
