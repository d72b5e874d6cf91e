import { toView } from "../lib/defined.ts";
import { notFound } from "../lib/errors.ts";
import type { DefinitionVersion, DefinitionVersionStore, ShownVersion } from "../store/definition-version-store.ts";
import type { VersionedRecord } from "../store/records.ts";

type Versioned<C> = C & VersionedRecord;

/** What is stored of a definition, without what its record says of it. */
export function changeOf<C>(record: Versioned<C>): C {
  const { _id, tenantId: _t, version: _v, createdBy: _b, createdAt: _c, updatedAt: _u, ...change } = record;
  return change as C; // the rest of the two
}

/** The versions that a definition of one kind has had, its current one among them. */
export function makeHistory<C>(versions: DefinitionVersionStore | undefined) {
  return {
    /** Keeps the version of a record, unless it is kept. `by`: who wrote it, where that is known. */
    async keep(record: Versioned<C>, by?: string): Promise<void> {
      if (versions === undefined) return;
      const { _id: definitionId, tenantId, version, updatedAt: at } = record;
      const text = JSON.stringify(changeOf<C>(record));
      const writer = by ?? (version === 1 ? record.createdBy : undefined);
      await versions.add({
        tenantId,
        definitionId,
        version,
        at,
        text,
        ...(writer === undefined ? {} : { by: writer }),
      });
    },
    /** The newest first; the current one also where none was kept of it. */
    async list(current: Versioned<C>) {
      const { tenantId, _id, version, updatedAt: at } = current;
      const kept = (await versions?.list(tenantId, _id)) ?? [];
      if (kept.some((one) => one.version === version)) return kept.map(toSummary);
      const bytes = Buffer.byteLength(JSON.stringify(changeOf<C>(current)));
      return [{ version, at, bytes }, ...kept].map(toSummary);
    },
    /** The record as it was at a version. @throws AppError `not_found`. */
    async find(current: Versioned<C>, version: number): Promise<Versioned<C>> {
      if (version === current.version) return current;
      const kept = await versions?.find(current.tenantId, current._id, version);
      if (!kept || version > current.version) throw notFound("version");
      const { _id, tenantId, createdBy, createdAt } = current;
      const change = readChange<C>(kept);
      return { ...change, _id, tenantId, createdBy, createdAt, version, updatedAt: kept.at };
    },
  };
}

const readChange = <C>({ text }: DefinitionVersion): C => JSON.parse(text);

const toSummary = ({ version, by, at, bytes }: Pick<ShownVersion, "version" | "by" | "at" | "bytes">) =>
  toView({ version, by, at, bytes });
