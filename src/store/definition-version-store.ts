import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { insertIfAbsent } from "./writes.ts";

/** A current or former version of a definition. It is stored as JSON, since the store may give a meaning to its keys. */
export type DefinitionVersion = TenantOwned & {
  /** The agent's, or the workflow's. */
  definitionId: string;
  version: number;
  /** Who wrote it; absent where an earlier release did not note it. */
  by?: string;
  at: Date;
  bytes: number;
  text: string;
};
export type ShownVersion = Omit<DefinitionVersion, "text">;

/** Versions that are kept of a definition, and their bytes together: the newest ones. */
export const MAX_VERSIONS = 20;
const MAX_BYTES = 2 << 20;
/** Maximum versions that exist for a moment while several are written. */
const MARGIN = 20;

export const definitionVersionCollection = defineCollection<DefinitionVersion>({
  name: "definitionVersions",
  indexes: [{ name: "definition", key: { tenantId: 1, definitionId: 1, version: -1 } }],
});

export type DefinitionVersionStore = ReturnType<typeof makeDefinitionVersionStore>;

export function makeDefinitionVersionStore(db: Db) {
  const versions = db.collection<DefinitionVersion>(definitionVersionCollection.name);
  const idOf = (definitionId: string, version: number) => `${definitionId}:${version}`;
  const newest = (tenantId: string, definitionId: string): Promise<ShownVersion[]> =>
    versions
      .find(ofTenant(tenantId, { definitionId }))
      .project<ShownVersion>({ definitionId: 1, version: 1, by: 1, at: 1, bytes: 1 })
      .sort({ version: -1 })
      .limit(MAX_VERSIONS + MARGIN)
      .toArray();
  return {
    /** Stores a version unless it is stored already, and removes versions that are then too old. */
    async add(given: Omit<DefinitionVersion, "_id" | "bytes">): Promise<void> {
      const { tenantId, definitionId, version, text } = given;
      const record = { _id: idOf(definitionId, version), ...given, bytes: Buffer.byteLength(text) };
      if (!(await insertIfAbsent(versions, record))) return;
      const old = tooOld(await newest(tenantId, definitionId)).map(({ _id }) => _id);
      if (old.length > 0) await versions.deleteMany(ofTenant(tenantId, { _id: { $in: old } }));
    },
    /** The newest first, without their definitions. */
    list: async (tenantId: string, definitionId: string): Promise<ShownVersion[]> =>
      (await newest(tenantId, definitionId)).slice(0, MAX_VERSIONS),
    find: (tenantId: string, definitionId: string, version: number): Promise<DefinitionVersion | null> =>
      versions.findOne(ofTenant(tenantId, { _id: idOf(definitionId, version) })),
    /** Removes all versions of a deleted definition. */
    async removeAll(tenantId: string, definitionId: string): Promise<void> {
      await versions.deleteMany(ofTenant(tenantId, { definitionId }));
    },
  };
}

/** Versions beyond the limits of number and bytes. The newest version is always kept. */
function tooOld(versions: readonly ShownVersion[]): ShownVersion[] {
  let bytes = 0;
  const end = versions.findIndex((version, at) => {
    bytes += version.bytes;
    return at >= MAX_VERSIONS || (at > 0 && bytes > MAX_BYTES);
  });
  return end < 0 ? [] : versions.slice(end);
}
