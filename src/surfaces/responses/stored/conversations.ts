import { AppError, invalidRequest, notFound } from "../../../lib/errors.ts";
import { newId } from "../../../lib/ids.ts";
import { idOfCall } from "../../../net/call-scope.ts";
import {
  type ConversationItem,
  type ConversationRecord,
  type ConversationStore,
  sumTexts,
} from "../../../store/conversation-store.ts";
import type { Quotas } from "../../../tenancy/quotas.ts";
import { type InputItem, MAX_ITEMS } from "../request-schemas.ts";
import type { MadeResponse } from "../response.ts";
import type { OutputItem } from "../response-schemas.ts";
import { isItemOf, isKept, type KeptItem, toInputItemId, toJoiningId } from "./item-ids.ts";
import { readItem } from "./records.ts";
import { type Included, toIncluded, toShownItem } from "./views.ts";

const DAY_MS = 86_400_000;
/** Largest record, in bytes; MongoDB takes none above 16 MiB. */
const MAX_RECORD_BYTES = 12 << 20;

type ConversationDeps = {
  store: ConversationStore;
  quotas: Quotas;
  config: { keptDays: number; maxConversationBytes: number };
};

/** A response that joins a conversation. */
type Joining = { conversationId: string; input: readonly InputItem[]; made: MadeResponse };

export type Conversations = ReturnType<typeof makeConversations>;

/** Conversations of the Responses API: items that are kept, read, and continued by responses. */
export function makeConversations(deps: ConversationDeps) {
  const { store, quotas } = deps;
  const records = makeFinding(deps);
  const { find, change, expireAt } = records;
  return {
    /** @throws AppError `invalid_request` for too many items, `quota_exceeded`. */
    async create(
      { tenantId, keyId }: { tenantId: string; keyId: string },
      { items: given, metadata }: { items: readonly InputItem[]; metadata: Record<string, string> },
    ): Promise<ConversationRecord> {
      const { id: _id, mayBeThere } = idOfCall("conversation");
      const made = mayBeThere ? await store.get(tenantId, _id) : null;
      if (made) return made;
      const items = toItems(given, []);
      requireRoom(deps.config, items);
      const bytes = sumTexts(items);
      await quotas.check(tenantId, "storedBytes", Math.max(1, bytes));
      const record = {
        _id,
        tenantId,
        keyId,
        metadata,
        items,
        bytes,
        version: 1,
        createdAt: new Date(),
      };
      const conversation = { ...record, expireAt: expireAt() };
      await store.insert(conversation);
      return conversation;
    },
    /** @throws AppError `not_found`. */
    get: find,
    /** Replaces the metadata. @throws AppError `not_found`, `unavailable`. */
    update: (tenantId: string, id: string, metadata: Record<string, string>) =>
      change(tenantId, id, () => ({ metadata })),
    /** @throws AppError `not_found`. */
    async remove(tenantId: string, id: string): Promise<void> {
      if (!(await store.remove(tenantId, id))) throw notFound("conversation");
    },
    ...makeItems(deps, records),
  };
}

type Finding = ReturnType<typeof makeFinding>;

function makeFinding({ store, config }: ConversationDeps) {
  const expireAt = () => new Date(Date.now() + config.keptDays * DAY_MS);
  const find = async (tenantId: string, id: string): Promise<ConversationRecord> => {
    const record = await store.get(tenantId, id);
    if (record === null) throw notFound("conversation");
    return record;
  };
  const change = async (tenantId: string, id: string, make: Parameters<typeof store.change>[1]) => {
    const changed = await store.change({ tenantId, id, expireAt: expireAt() }, make);
    if (changed === null) throw notFound("conversation");
    return changed;
  };
  return { expireAt, find, change };
}

function makeItems({ quotas, config }: ConversationDeps, { find, change }: Finding) {
  return {
    /** Adds items to the end, and returns them. @throws AppError `not_found`, `invalid_request`, `quota_exceeded`, `unavailable`. */
    async add(tenantId: string, id: string, given: readonly InputItem[]): Promise<ConversationItem[]> {
      let added: ConversationItem[] = [];
      await quotas.check(tenantId, "storedBytes", Math.max(1, sumTexts(toItems(given, []))));
      await change(tenantId, id, ({ items }) => {
        added = toItems(given, items);
        const all = [...items, ...added];
        requireRoom(config, all);
        return { items: all };
      });
      return added;
    },
    /** @throws AppError `not_found`. */
    async item(tenantId: string, id: string, itemId: string): Promise<ConversationItem> {
      const item = (await find(tenantId, id)).items.find((one) => one.id === itemId);
      if (item === undefined) throw notFound("item");
      return item;
    },
    /** Removes an item, and returns the conversation. @throws AppError `not_found`, `unavailable`. */
    removeItem: (tenantId: string, id: string, itemId: string) =>
      change(tenantId, id, ({ items }) => {
        const left = items.filter((one) => one.id !== itemId);
        if (left.length === items.length) throw notFound("item");
        return { items: left };
      }),
    /**
     * Adds what a response was asked and has answered. Joining again replaces what an earlier attempt added.
     * @throws AppError `not_found`, `request_too_large`, `unavailable`.
     */
    async join(tenantId: string, { conversationId, input, made: { response, kept } }: Joining): Promise<void> {
      const asked = input.filter(isKept).map((item, place) => toItem(toInputItemId(response.id, item, place), item));
      const joining = [...asked, ...kept.map((item) => toItem(item.id, item))];
      await quotas.check(tenantId, "storedBytes", 0).then((take) => take(sumTexts(joining)));
      await change(tenantId, conversationId, ({ items }) => {
        const all = [...items.filter(({ id }) => !isItemOf(response.id, id)), ...joining];
        if (sumTexts(all) > MAX_RECORD_BYTES)
          throw new AppError("request_too_large", "The conversation has no room for the response.");
        return { items: all };
      });
    },
  };
}

/** @throws AppError `invalid_request` beyond what a request could take of it. */
function requireRoom({ maxConversationBytes }: ConversationDeps["config"], items: readonly ConversationItem[]): void {
  if (items.length > MAX_ITEMS) throw tooMany(`${MAX_ITEMS} items`);
  if (sumTexts(items) > maxConversationBytes) throw tooMany(`${maxConversationBytes} bytes (MAX_JSON_BYTES)`);
}

const toItem = (id: string, item: KeptItem | OutputItem): ConversationItem => ({ id, text: JSON.stringify(item) });

/** Items with ids of their own. Reasoning keeps the id by which its client knows it, unless it is there already. */
function toItems(given: readonly InputItem[], there: readonly ConversationItem[]): ConversationItem[] {
  const ulid = newId("conversation").slice("conv_".length);
  const taken = new Set(there.map(({ id }) => id));
  return given.filter(isKept).map((item, place) => {
    const own = item.type === "reasoning" && item.id && !taken.has(item.id) ? item.id : undefined;
    const id = own ?? toJoiningId(ulid, item, place);
    taken.add(id);
    return toItem(id, item);
  });
}

/** An item as its caller gets it. */
export function showItem({ id, text }: ConversationItem, { areResultsShown, isSealedShown }: Included) {
  const item = readItem(text);
  const shown =
    item.type === "file_search_call" && "results" in item ? toIncluded(item, { isSealedShown, areResultsShown }) : item;
  return toShownItem({ id, item: shown, isSealedShown });
}

function tooMany(most: string): AppError {
  const advice = "Begin a new one, or compact it by /v1/responses/compact.";
  return invalidRequest("items", `items: the conversation would have more than ${most}. ${advice}`);
}
