import { z } from "zod";
import { idSchema } from "../../src/lib/ids.ts";
import { searchToolBodySchema, searchToolReplacementSchema, searchToolViewSchema } from "../../src/rag/search-tools.ts";
import { listOf, pageQuery } from "../list-query.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const params = z.object({ id: idSchema("tool") });
const view = named("SearchTool", searchToolViewSchema);
const example = {
  name: "search_manuals",
  description: "Searches the manuals of all pumps.",
  collection: "manuals",
  topK: 5,
};

const routes = declareRoutes({ auth: "member", tags: ["Knowledge retrieval"], bodyLimit: "settings" });

export const searchToolRoutes = [
  routes.post("/rag/tools", {
    summary: "Publish a set of documents as a tool of `/mcp`",
    description:
      "The set is one or several collections, documents by id, or those that a filter finds, as in a query; without any of " +
      "them all documents. Its call takes `query` and `topK` and searches as `/rag/query` does, with the rights of its caller. " +
      "The name is there once among the tenant's tools. A key that may not use each of the collections does not see the tool.",
    body: named("SearchToolRequest", searchToolBodySchema),
    example,
    responses: { 201: { description: "The tool", body: view } },
    errors: ["wrong_state", "quota_exceeded", "insufficient_scope", "not_found"],
    result: ({ body, caller, platform }) => platform.searchTools.create(caller, body),
  }),
  routes.get("/rag/tools", {
    summary: "Sets of documents that are tools, newest first",
    description: "Those that the key may use: a page may have fewer than its limit, and still a next page.",
    query: pageQuery("tool"),
    responses: { 200: { description: "A page of tools", body: listOf(view) } },
    result: ({ query, caller, platform }) => platform.searchTools.list(caller, query),
  }),
  routes.get("/rag/tools/:id", {
    summary: "One set of documents that is a tool",
    params,
    responses: { 200: { description: "The tool", body: view } },
    result: ({ params: { id }, caller, platform }) => platform.searchTools.get(caller, id),
  }),
  routes.put("/rag/tools/:id", {
    summary: "Replace the name, the description and the set of a tool",
    description: "Members change and withdraw tools of their own, admins those of others too.",
    params,
    body: named("SearchToolReplacement", searchToolReplacementSchema),
    example,
    responses: { 200: { description: "The tool", body: view } },
    errors: ["wrong_state", "insufficient_role", "insufficient_scope"],
    result: ({ params: { id }, body, caller, platform }) => platform.searchTools.replace(caller, id, body),
  }),
  routes.delete("/rag/tools/:id", {
    summary: "Withdraw a tool",
    description: "Its documents stay.",
    params,
    responses: { 204: { description: "It was withdrawn" } },
    errors: ["insufficient_role"],
    result: ({ params: { id }, caller, platform }) => platform.searchTools.remove(caller, id),
  }),
];
