import { z } from "zod";
import { collectionNameSchema } from "../../src/rag/collections.ts";
import { collectionViewSchema } from "../../src/rag/document-collections.ts";
import { listOf, listQuery } from "../list-query.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const routes = declareRoutes({ auth: "member", tags: ["Knowledge retrieval"], bodyLimit: "settings" });

export const collectionRoutes = [
  routes.get("/rag/collections", {
    summary: "Collections of documents, newest first, with what is in them",
    description: "`default` comes first. With more than 1,000 documents the numbers may be some seconds old.",
    query: listQuery.extend({ cursor: collectionNameSchema.optional().describe("`nextCursor` of the page before") }),
    responses: {
      200: { description: "A page of collections", body: listOf(named("CollectionSummary", collectionViewSchema)) },
    },
    result: ({ query, caller, platform }) => platform.rag.collections.list(caller, query),
  }),
  routes.delete("/rag/collections/:name", {
    summary: "Delete a collection with all its documents",
    description:
      "No query sees them from then on; a large one is removed in the background. `default` cannot be deleted.",
    params: z.object({ name: collectionNameSchema }),
    responses: { 204: { description: "It was deleted" } },
    errors: ["wrong_state"],
    result: ({ params: { name }, caller, platform }) => platform.rag.collections.remove(caller, name),
  }),
];
