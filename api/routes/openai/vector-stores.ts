import { z } from "zod";
import { collectionNameSchema } from "../../../src/rag/collections.ts";
import type { CollectionChange } from "../../../src/store/collection-store.ts";
import type { PageQuery } from "../../../src/store/page.ts";
import { createStoreSchema, searchSchema, updateStoreSchema } from "../../../src/vector-stores/schemas.ts";
import { vectorStoreSchema } from "../../../src/vector-stores/views.ts";
import { declareRoutes } from "../../route.ts";
import { named } from "../../schema-names.ts";
import { afterQuery, openAiListOf } from "./lists.ts";

export const storeParams = z.object({ id: collectionNameSchema });
export const orderedQuery = afterQuery.extend({ order: z.enum(["asc", "desc"]).default("desc") });

/** The page that a query of OpenAI's lists asks for. */
export const toOrderedPage = ({
  after,
  limit,
  order,
}: z.output<typeof orderedQuery>): PageQuery & { isAscending: boolean } => ({
  limit,
  cursor: after,
  isAscending: order === "asc",
});

/** A page as OpenAI's clients read it, with the ids of its ends. */
export const toEndsList = <T extends { id: string }>({
  data,
  nextCursor,
}: {
  data: T[];
  nextCursor: string | null;
}) => ({
  object: "list",
  data,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: nextCursor !== null,
});
export const endsListOf = <T extends z.ZodType>(item: T) =>
  openAiListOf(item, { first_id: z.string().nullable(), last_id: z.string().nullable() });

const storeSchema = named("VectorStore", vectorStoreSchema);
const resultSchema = z.object({
  file_id: z.string(),
  filename: z.string(),
  score: z.number(),
  attributes: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  content: z.array(z.object({ type: z.literal("text"), text: z.string() })),
});

const routes = declareRoutes({ auth: "member", tags: ["OpenAI-compatible"] });

/** What a body says of a store; `undefined` leaves a field as it is, null removes it. */
function toChange(body: z.output<typeof updateStoreSchema>): CollectionChange {
  const { name, expires_after, metadata } = body;
  return {
    ...(name === undefined ? {} : { label: name }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(expires_after === undefined ? {} : { expiresAfterDays: expires_after?.days ?? null }),
  };
}

export const vectorStoreRoutes = [
  routes.post("/v1/vector_stores", {
    summary: "Make a vector store: a collection of documents, whose name is its id",
    description:
      "`chunking_strategy` is accepted and not used: chunks follow the headings and sentences of a document.",
    body: named("VectorStoreRequest", createStoreSchema),
    responses: { 200: { description: "The vector store", body: storeSchema } },
    errors: ["not_found", "quota_exceeded", "compliance_blocked"],
    example: { name: "Manuals" },
    async result({ body, caller, platform, ignore }) {
      for (const field of ["chunking_strategy", "description"] as const) if (body[field] !== undefined) ignore(field);
      return platform.vectorStores.create(caller, toChange(body), body.file_ids ?? []);
    },
  }),
  routes.get("/v1/vector_stores", {
    summary: "Vector stores: the collection `default`, then the others, newest first",
    query: orderedQuery,
    responses: { 200: { description: "A page of vector stores", body: endsListOf(storeSchema) } },
    result: async ({ query, caller, platform }) =>
      toEndsList(await platform.vectorStores.list(caller, toOrderedPage(query))),
  }),
  routes.get("/v1/vector_stores/:id", {
    summary: "One vector store, or a collection by its name",
    params: storeParams,
    responses: { 200: { description: "The vector store", body: storeSchema } },
    result: ({ params: { id }, caller, platform }) => platform.vectorStores.get(caller, id),
  }),
  routes.post("/v1/vector_stores/:id", {
    summary: "Change the name, metadata or expiry of a vector store",
    params: storeParams,
    body: named("VectorStoreChange", updateStoreSchema),
    responses: { 200: { description: "The vector store", body: storeSchema } },
    errors: ["compliance_blocked"],
    result: ({ params: { id }, body, caller, platform }) => platform.vectorStores.update(caller, id, toChange(body)),
  }),
  routes.delete("/v1/vector_stores/:id", {
    summary: "Delete a vector store; its files stay",
    params: storeParams,
    responses: {
      200: {
        description: "It is deleted",
        body: z.object({ id: z.string(), object: z.literal("vector_store.deleted"), deleted: z.literal(true) }),
      },
    },
    errors: ["wrong_state"],
    async result({ params: { id }, caller, platform }) {
      await platform.vectorStores.remove(caller, id);
      return { id, object: "vector_store.deleted", deleted: true };
    },
  }),
  routes.post("/v1/vector_stores/:id/search", {
    summary: "Find passages in a vector store, by meaning and words",
    description:
      "`rewrite_query` has the platform's default chat model write further searches, which `search_query` names. A `ranker` is " +
      "accepted and not used.",
    params: storeParams,
    body: named("VectorStoreSearch", searchSchema),
    responses: {
      200: {
        description: "Passages, best first",
        body: z.object({
          object: z.literal("vector_store.search_results.page"),
          search_query: z.array(z.string()),
          data: z.array(resultSchema),
          has_more: z.literal(false),
          next_page: z.null(),
        }),
      },
    },
    errors: ["wrong_state", "compliance_blocked"],
    example: { query: "When is the pump bled?" },
    async result({ params: { id }, body, caller, platform, signal, ignore }) {
      const { query, filters, max_num_results: limit, ranking_options: ranking = {}, rewrite_query } = body;
      if (ranking.ranker !== undefined && ranking.ranker !== "auto") ignore("ranking_options.ranker");
      const queries = [query].flat();
      const search = {
        names: [id],
        queries,
        filters: filters ?? undefined,
        limit,
        scoreThreshold: ranking.score_threshold,
        rewrite: rewrite_query ? (true as const) : undefined,
      };
      const { passages, searched } = await platform.vectorStores.search(caller, search, signal);
      const data = passages.map(({ fileId, filename, score, attributes, text }) => {
        return { file_id: fileId, filename, score, attributes, content: [{ type: "text", text }] };
      });
      return {
        object: "vector_store.search_results.page",
        search_query: searched,
        data,
        has_more: false,
        next_page: null,
      };
    },
  }),
];
