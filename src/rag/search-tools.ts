import { z } from "zod";
import { makeDefinitions, replacementOf, toVersionView, versionFields } from "../definitions/definitions.ts";
import { publishSchema } from "../definitions/published-tools.ts";
import type { ToolNames } from "../definitions/tool-names.ts";
import { defined } from "../lib/defined.ts";
import { notFound } from "../lib/errors.ts";
import { idSchema } from "../lib/ids.ts";
import type { Page, PageQuery } from "../store/page.ts";
import type { PageOfPublished } from "../store/published.ts";
import type { SearchToolChange, SearchToolRecord } from "../store/search-tool-store.ts";
import type { Store } from "../store/store.ts";
import type { Caller } from "../tenancy/roles.ts";
import { mayUse } from "./collections.ts";
import { requireCollections } from "./known-collections.ts";
import { queryBodySchema, queryModes } from "./query-schemas.ts";

const { collection, documentIds, filter, topK } = queryBodySchema.shape;
/** Which documents a tool searches: what a query has beside its text. */
const scopeFields = { documentIds, filter, topK: topK.unwrap().optional(), mode: z.enum(queryModes).optional() };

/** A set of documents that is a tool of `/mcp`. */
export const searchToolBodySchema = z.strictObject({ ...publishSchema.shape, collection, ...scopeFields });
export const searchToolReplacementSchema = replacementOf("tool", searchToolBodySchema);
export const searchToolViewSchema = z.object({
  toolId: idSchema("tool"),
  ...searchToolBodySchema.shape,
  ...versionFields,
});
type SearchToolBody = z.output<typeof searchToolBodySchema>;
type SearchToolView = z.output<typeof searchToolViewSchema>;
type Scope = Pick<SearchToolBody, "documentIds" | "filter" | "topK" | "mode">;

/** Whether a key may use a tool: it is hidden from keys that may not use each of its collections, whose query would be refused. */
const mayUseTool = (caller: Pick<Caller, "collections">, { collections }: Pick<SearchToolRecord, "collections">) =>
  collections === undefined || collections.every((name) => mayUse(caller, { collection: name }));

/** The sets of documents that a tenant publishes as tools. */
export function makeSearchTools(deps: { store: Pick<Store, "searchTools" | "collections">; toolNames: ToolNames }) {
  const { searchTools } = deps.store;
  const definitions = makeDefinitions({
    what: "tool",
    store: searchTools,
    toolNames: deps.toolNames,
    publishedAs: ({ name }) => name,
    nameField: "name",
    isOfItsCollections: true,
    async toChange(_, { name, description, collection, ...scope }: SearchToolBody): Promise<SearchToolChange> {
      const collections = collection === undefined ? undefined : [...new Set([collection].flat())];
      return { name, description, ...defined({ collections }), scope: JSON.stringify(scope) };
    },
    toView,
    toSummary: toView,
  });
  const requireUse = async (caller: Caller, id: string) => {
    const tool = await searchTools.get(caller.tenantId, id);
    if (!tool || !mayUseTool(caller, tool)) throw notFound("tool");
    return tool;
  };
  return {
    /** @throws AppError `wrong_state`, `quota_exceeded`; `insufficient_scope` for a foreign collection, `not_found` for an unknown one. */
    async create(caller: Caller, body: SearchToolBody): Promise<SearchToolView> {
      await requireCollections(deps, caller, { wanted: body.collection });
      return definitions.create(caller, body);
    },
    /** Those that the key may use, the newest first. */
    async list(caller: Caller, page: PageQuery): Promise<Page<SearchToolView>> {
      const { data, nextCursor } = await searchTools.list(caller.tenantId, page);
      return { data: data.filter((tool) => mayUseTool(caller, tool)).map(toView), nextCursor };
    },
    /** @throws AppError `not_found`. */
    get: async (caller: Caller, id: string): Promise<SearchToolView> => toView(await requireUse(caller, id)),
    /** @throws AppError as `create`; `not_found`, `insufficient_role`. */
    async replace(
      caller: Caller,
      id: string,
      body: z.output<typeof searchToolReplacementSchema>,
    ): Promise<SearchToolView> {
      await requireUse(caller, id);
      await requireCollections(deps, caller, { wanted: body.collection });
      return definitions.replace(caller, id, body);
    },
    /** @throws AppError `not_found`, `insufficient_role`. */
    async remove(caller: Caller, id: string): Promise<void> {
      await requireUse(caller, id);
      await definitions.remove(caller, id);
    },
    /** Those of a page that a key may use; and the set of documents of one. */
    async listPublished(caller: Caller, page: PageOfPublished) {
      const { tools, end } = await searchTools.listPublished(caller.tenantId, page);
      return { tools: tools.filter((tool) => mayUseTool(caller, tool)), end };
    },
    async findPublished(caller: Caller, name: string) {
      const tool = await searchTools.findPublished(caller.tenantId, name);
      return tool && mayUseTool(caller, tool) ? tool : null;
    },
    /** The documents that a tool searches. @throws AppError `not_found`. */
    async scopeOf(caller: Caller, id: string) {
      const { collections: collection, scope } = await requireUse(caller, id);
      return defined({ ...readScope(scope), collection });
    },
  };
}

const readScope = (scope: string): Scope => JSON.parse(scope); // checked when it was stored

function toView(tool: SearchToolRecord): SearchToolView {
  const { _id: toolId, name, description, collections: collection, scope } = tool;
  return { toolId, name, description, ...defined({ collection }), ...readScope(scope), ...toVersionView(tool) };
}
