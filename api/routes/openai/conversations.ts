import { z } from "zod";
import { withFewFields } from "../../../src/lib/bounded-json.ts";
import { AppError, renameField } from "../../../src/lib/errors.ts";
import { idSchema } from "../../../src/lib/ids.ts";
import type { ConversationRecord } from "../../../src/store/conversation-store.ts";
import { inputItemSchema, MAX_ITEMS } from "../../../src/surfaces/responses/request-schemas.ts";
import { showItem } from "../../../src/surfaces/responses/stored/conversations.ts";
import { declareRoutes, type HandlerInput } from "../../route.ts";
import { named } from "../../schema-names.ts";
import { including, itemPageSchema, itemSchema, itemsQuery, toIncluded, toItemPage } from "./items.ts";
import { toSeconds } from "./lists.ts";
import { recallInput, withContents } from "./response-input.ts";

/** OpenAI's own limit. */
const MAX_METADATA_FIELDS = 16;
const metadata = withFewFields(MAX_METADATA_FIELDS, z.record(z.string().max(64), z.string().max(512)));
const items = z.array(inputItemSchema).max(MAX_ITEMS);

/** As OpenAI has it: https://platform.openai.com/docs/api-reference/conversations/object. */
const conversationSchema = named(
  "Conversation",
  z.object({
    id: z.string(),
    object: z.literal("conversation"),
    created_at: z.number().int(),
    metadata: z.record(z.string(), z.string()),
  }),
);

const params = z.object({ id: idSchema("conversation") });
const itemParams = params.extend({ itemId: z.string().max(200) });
const PATH = "/v1/conversations";

const routes = declareRoutes({ auth: "member", tags: ["OpenAI-compatible"] });
const conversationResponse = { 200: { description: "The conversation", body: conversationSchema } };

export const conversationRoutes = [
  routes.post(PATH, {
    summary: "Make a conversation, which responses join",
    description:
      "It is kept for `RESPONSE_DAYS` after its last change, counts as stored bytes, and has 2,000 items and `MAX_JSON_BYTES` at most.",
    body: z.object({ items: items.nullish(), metadata: metadata.nullish() }),
    isBodyOptional: true,
    responses: conversationResponse,
    errors: ["not_found", "quota_exceeded", "compliance_blocked"],
    async result(input) {
      const { body, caller, platform } = input;
      const given = await readItems(input, body.items ?? []);
      const { conversations } = platform.responses;
      const about = { items: given, metadata: await platform.guards.take(caller, "input", body.metadata ?? {}) };
      return toView(await conversations.create(caller, about));
    },
  }),
  routes.get(`${PATH}/:id`, {
    isOfOwn: "conversations",
    summary: "One conversation, without its items",
    params,
    responses: conversationResponse,
    result: async ({ params: { id }, caller, platform }) =>
      toView(await platform.responses.conversations.get(caller.tenantId, id)),
  }),
  routes.post(`${PATH}/:id`, {
    isOfOwn: "conversations",
    summary: "Replace the metadata of a conversation",
    params,
    body: z.object({ metadata: metadata.nullable() }),
    example: { metadata: { topic: "leases" } },
    responses: conversationResponse,
    errors: ["compliance_blocked"],
    async result({ params: { id }, body, caller, platform }) {
      const about = await platform.guards.take(caller, "input", body.metadata ?? {});
      return toView(await platform.responses.conversations.update(caller.tenantId, id, about));
    },
  }),
  routes.delete(`${PATH}/:id`, {
    isOfOwn: "conversations",
    summary: "Delete a conversation with its items",
    description: "Responses that joined it can be read, and cannot be continued any more.",
    params,
    responses: {
      200: {
        description: "It is deleted",
        body: z.object({ id: z.string(), object: z.literal("conversation.deleted"), deleted: z.literal(true) }),
      },
    },
    async result({ params: { id }, caller, platform }) {
      await platform.responses.conversations.remove(caller.tenantId, id);
      return { id, object: "conversation.deleted", deleted: true };
    },
  }),
  routes.post(`${PATH}/:id/items`, {
    isOfOwn: "conversations",
    summary: "Add items to the end of a conversation",
    params,
    query: including,
    body: z.object({ items }),
    example: { items: [{ type: "message", role: "user", content: "What does a lease protect?" }] },
    responses: { 200: { description: "The items, with their ids", body: itemPageSchema } },
    errors: ["quota_exceeded", "compliance_blocked"],
    async result(input) {
      const {
        params: { id },
        query,
        body,
        caller,
        platform,
      } = input;
      const given = await readItems(input, body.items);
      const added = await platform.responses.conversations.add(caller.tenantId, id, given);
      const shown = added.map((item) => showItem(item, toIncluded(query, caller)));
      return toItemPage(shown, { order: "asc", limit: Math.max(1, shown.length) });
    },
  }),
  routes.get(`${PATH}/:id/items`, {
    isOfOwn: "conversations",
    summary: "The items of a conversation, the last one first",
    params,
    query: itemsQuery,
    responses: { 200: { description: "A page of items", body: itemPageSchema } },
    async result({ params: { id }, query, caller, platform }) {
      const { items: all } = await platform.responses.conversations.get(caller.tenantId, id);
      const page = toItemPage(all, query);
      return { ...page, data: page.data.map((item) => showItem(item, toIncluded(query, caller))) };
    },
  }),
  routes.get(`${PATH}/:id/items/:itemId`, {
    isOfOwn: "conversations",
    summary: "One item of a conversation",
    params: itemParams,
    query: including,
    responses: { 200: { description: "The item", body: itemSchema } },
    async result({ params: { id, itemId }, query, caller, platform }) {
      const item = await platform.responses.conversations.item(caller.tenantId, id, itemId);
      return showItem(item, toIncluded(query, caller));
    },
  }),
  routes.delete(`${PATH}/:id/items/:itemId`, {
    isOfOwn: "conversations",
    summary: "Remove an item from a conversation",
    params: itemParams,
    responses: conversationResponse,
    result: async ({ params: { id, itemId }, caller, platform }) =>
      toView(await platform.responses.conversations.removeItem(caller.tenantId, id, itemId)),
  }),
];

type Items = z.output<typeof items>;

/** Items as they are kept: with the contents of files, and with what they refer to. Names those that cannot be kept. */
async function readItems(given: HandlerInput<unknown, unknown, unknown>, asked: Items) {
  const read = async () => recallInput(await withContents({ ...given, body: { input: asked } }));
  const { input } = await read().catch((error: unknown) => {
    throw error instanceof AppError ? renameField(error, (field) => field.replace(/^input/, "items")) : error;
  });
  if (typeof input === "string") return [];
  for (const [place, { type }] of input.entries())
    if (type === "other" || type === "additional_tools") given.ignore(`items[${place}]`);
  return input;
}

const toView = ({ _id: id, createdAt, metadata: about }: ConversationRecord): z.output<typeof conversationSchema> => ({
  id,
  object: "conversation",
  created_at: toSeconds(createdAt),
  metadata: about,
});
