import type { Db } from "mongodb";
import { defineCollection } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";
import { makePublished } from "./published.ts";
import { makeVersionedRecords, type VersionedRecord } from "./records.ts";

/** A tool of `/mcp` that searches a set of documents. */
export type SearchToolRecord = VersionedRecord & {
  name: string;
  description: string;
  /** The collections that it searches; absent: all. */
  collections?: string[];
  /** The rest of the set as JSON: metadata may have names that the store has a meaning for. */
  scope: string;
};

/** What a replacement changes. */
export type SearchToolChange = Pick<SearchToolRecord, "name" | "description" | "collections" | "scope">;

export const searchToolCollection = defineCollection<SearchToolRecord>({
  name: "searchTools",
  indexes: [
    { key: { tenantId: 1, _id: -1 }, name: "tenant_newest" },
    { key: { tenantId: 1, name: 1 }, name: "tenant_tool" },
  ],
});

/** What the list of tools shows of one. */
type ListedSearchTool = Pick<SearchToolRecord, "_id" | "name" | "description" | "collections">;

export function makeSearchToolStore(db: Db) {
  const tools = db.collection<SearchToolRecord>(searchToolCollection.name);
  const fields = ["name", "description", "collections"];
  return {
    ...makeVersionedRecords<SearchToolRecord, SearchToolChange>(tools, ["collections"]),
    ...makePublished(tools, { name: "name", fields }, (tool: ListedSearchTool) => [tool]),
    list: (tenantId: string, page: PageQuery): Promise<Page<SearchToolRecord>> => findPage(tools, { tenantId, page }),
  };
}
