import type { Collection, Filter } from "mongodb";
import type { ErrorView } from "../lib/errors.ts";
import { ofTenant } from "./collection.ts";
import type { DocumentWarning } from "./document-record.ts";
import { type DocumentRecord, ownSources, type SourceValidators } from "./document-record.ts";
import { documentStatesBefore, pendingStates } from "./document-state.ts";
import { findFirst } from "./page.ts";
import { changeOne, updateIf } from "./writes.ts";

/** What a new source or job changes in a document. */
export type Reassignment = Pick<DocumentRecord, "jobId" | "keyId"> &
  Partial<
    Pick<
      DocumentRecord,
      | "title"
      | "isTitleGiven"
      | "metadata"
      | "tags"
      | "expiresAt"
      | "refreshEveryHours"
      | "refreshAt"
      | "fileBatchId"
      | "source"
      | "sourceId"
      | "refreshJobId"
      | "requireComplete"
    >
  >;

/** What a complete version changes. */
type Publication = Pick<DocumentRecord, "version" | "chunks" | "publishedBy"> & {
  type: string;
  title?: string;
  contentHash: string;
  vectorSpace: string;
  warnings: DocumentWarning[];
  validators?: SourceValidators;
  duplicateOf: string | null;
};

/** What is said of a document besides its text. */
type Description = {
  set: Partial<
    Pick<
      DocumentRecord,
      "title" | "isTitleGiven" | "metadata" | "tags" | "expiresAt" | "refreshEveryHours" | "refreshAt"
    >
  > & { "source.name"?: string };
  unset: readonly ("expiresAt" | RefreshField)[];
};

/** What a document has that is refreshed by itself. */
export const refreshFields = ["refreshEveryHours", "refreshAt", "refreshFailures"] as const;
type RefreshField = (typeof refreshFields)[number];

/** A sweep looks for the chunks of versions that nobody sees this long after the last one was begun, in ms, and after a look in vain. */
const STRAYS_AFTER_MS = 10 * 60_000;
export const nextLookForStrays = () => ({ straysAt: new Date(Date.now() + STRAYS_AFTER_MS) });
/** That a version was not refused: what comes late of its attempt, or was sent before, publishes it no more then. */
export const notRefused = (version: number) => ({ refused: { $ne: version } });
/** Refused versions that a document remembers, the newest: of an older attempt nothing is under way to the store. */
const MAX_REFUSED = 50;

const toUnset = (fields: readonly string[]) => Object.fromEntries(fields.map((field) => [field, ""]));

/** Changes a document under the conditions that must hold for it; the result is null when they do not. */
const makeChange =
  (documents: Collection<DocumentRecord>) =>
  (
    { tenantId, documentId, ...filter }: Filter<DocumentRecord> & { tenantId: string; documentId: string },
    set: Partial<DocumentRecord>,
    more: object = {},
  ) => {
    const there = { ...filter, ...ofTenant(tenantId, { _id: documentId }) };
    return changeOne(documents, there, { $set: { ...set, updatedAt: new Date() }, ...more });
  };

/** Changes of a document. */
export function makeDocumentChanges(documents: Collection<DocumentRecord>) {
  const change = makeChange(documents);
  return {
    ...makeVersionChanges(change),
    ...makeStrays(documents),
    /**
     * Gives the document to another job, as a re-ingest does, perhaps with another source. Queries keep seeing the present
     * version. Returns null if the document is gone, or, with a source, if it has another job by now.
     */
    async reassign(known: DocumentRecord, { sourceId, ...given }: Reassignment) {
      const { tenantId, _id: documentId, jobId } = known;
      const filter = { tenantId, documentId, ...(given.source || given.refreshJobId ? { jobId } : {}) };
      const waiting = { status: { $in: documentStatesBefore("queued").concat("queued") } };
      const formerSources = given.source ? ownSources(known) : [];
      const set = {
        ...given,
        ...(sourceId === undefined ? {} : { sourceId }),
        ...(formerSources.length > 0 ? { formerSources } : {}),
      };
      const refresh = given.refreshEveryHours === undefined ? refreshFields : (["refreshFailures"] as const);
      const other = {
        ...{ urlHash: "", validators: "", ...toUnset(refresh) },
        ...(sourceId === undefined ? { sourceId: "" } : {}),
      };
      const cleared = { $unset: { error: "", ...(given.source ? other : {}) } };
      return (
        (await change({ ...filter, status: "indexed" }, set, cleared)) ??
        (await change({ ...filter, ...waiting }, { ...set, status: "queued" }, cleared))
      );
    },
    /** Changes the document's metadata, not its text. Returns null if it is gone. */
    describeOne: (tenantId: string, documentId: string, { set, unset }: Description) =>
      change(
        { tenantId, documentId, status: { $ne: "deleting" } },
        set,
        unset.length === 0 ? {} : { $unset: toUnset(unset) },
      ),
    /** Notes that its former sources are removed, unless it has other former sources by now. */
    async forgetSources({ tenantId, _id: documentId, formerSources = [] }: DocumentRecord) {
      await change({ tenantId, documentId, formerSources }, {}, { $unset: { formerSources: "" } });
    },
    /** Hides the document for good. Returns null if it is gone. */
    beginDelete: (tenantId: string, documentId: string) =>
      change(
        { tenantId, documentId, status: { $in: documentStatesBefore("deleting") } },
        { status: "deleting" },
        { $unset: { urlHash: "", externalHash: "" } },
      ),
    /** Removes the record that `beginDelete` left. */
    async drop(tenantId: string, documentId: string) {
      await documents.deleteOne(ofTenant(tenantId, { _id: documentId, status: "deleting" as const }));
    },
    /** Marks an unfinished document as looked at, so that the next look takes others first. */
    async touch(tenantId: string, documentId: string): Promise<void> {
      await change({ tenantId, documentId }, {});
    },
  };
}

/** What is done about the chunks of versions that nobody sees. */
function makeStrays(documents: Collection<DocumentRecord>) {
  return {
    /** Sees to it that versions are not published any more, unless the last of them is, or a later one; others of the document may be. */
    async refuse(tenantId: string, documentId: string, { from, to }: { from: number; to: number }): Promise<void> {
      const first = Math.max(from, to - MAX_REFUSED + 1);
      const $each = Array.from({ length: to - first + 1 }, (_, n) => first + n);
      const unpublished = ofTenant(tenantId, { _id: documentId, version: { $lt: to } });
      await documents.updateOne(unpublished, { $push: { refused: { $each, $slice: -MAX_REFUSED } } });
    },
    /** Documents of all tenants that may have such chunks. */
    withStrays: ({ before, limit }: { before: Date; limit: number }) =>
      findFirst(documents, { straysAt: { $lte: before } }, { by: "straysAt", limit }),
    /** Has the document looked at later. */
    async lookForStraysLater({ tenantId, _id }: DocumentRecord): Promise<void> {
      await updateIf(documents, ofTenant(tenantId, { _id, straysAt: { $exists: true } }), {
        $set: nextLookForStrays(),
      });
    },
    /** Notes that there are none, unless another version was begun. */
    async haveNoStrays({ tenantId, _id, lastVersion }: Pick<DocumentRecord, "tenantId" | "_id" | "lastVersion">) {
      await documents.updateOne(ofTenant(tenantId, { _id, lastVersion }), { $unset: { straysAt: "" } });
    },
  };
}

/** Changes by the jobs that make versions of a document. */
function makeVersionChanges(change: ReturnType<typeof makeChange>) {
  return {
    /** Starts a version, whose number belongs to this attempt alone. Returns null if the document is gone. */
    async beginVersion(tenantId: string, documentId: string) {
      const filter = { tenantId, documentId };
      const pending = { status: { $in: documentStatesBefore("processing") } };
      const next = { $inc: { lastVersion: 1 } };
      return (
        (await change({ ...filter, ...pending }, { status: "processing", ...nextLookForStrays() }, next)) ??
        (await change({ ...filter, status: "indexed" }, nextLookForStrays(), next))
      );
    },
    /**
     * Moves the document to a version. If it is gone or has a later version, or this one was refused, returns null and changes
     * nothing. A title given by the caller stays.
     */
    async publish(tenantId: string, documentId: string, { type, title, duplicateOf, ...publication }: Publication) {
      const { version } = publication;
      const earlier = {
        status: { $in: documentStatesBefore("indexed") },
        version: { $lt: version },
        ...notRefused(version),
      };
      const set = {
        ...publication,
        status: "indexed",
        "source.type": type,
        ...(duplicateOf === null ? {} : { duplicateOf }),
      } as const;
      const isFirst = version === 1; // none before it has chunks
      const gone = {
        $unset: {
          error: "",
          ...(duplicateOf === null ? { duplicateOf: "" } : {}),
          ...(isFirst ? { straysAt: "" } : {}),
        },
      };
      const to = { tenantId, documentId, ...earlier };
      const isTitleGiven = { $ne: true };
      const titled = title !== undefined && (await change({ ...to, isTitleGiven }, { ...set, title }, gone));
      return titled || change(to, set, gone);
    },
    /**
     * Records why a job failed; `attempted` is the version of that attempt. A visible document stays `indexed`. A document with
     * another job or attempt is not changed.
     */
    async fail(
      tenantId: string,
      documentId: string,
      { jobId, error, attempted }: { jobId: string; error: ErrorView; attempted?: number },
    ) {
      const version = attempted === undefined ? {} : { version: { $lte: attempted } };
      const filter = { tenantId, documentId, jobId, ...version };
      const failed = await change({ ...filter, status: { $in: [...pendingStates] } }, { status: "failed", error });
      if (!failed) await change({ ...filter, status: "indexed" }, { error });
    },
    /** Marks a document that no query sees as failed, if it has not changed since it was read. Returns whether it did. */
    async abandon({ tenantId, _id: documentId, jobId, lastVersion, updatedAt }: DocumentRecord, error: ErrorView) {
      const unchanged = { tenantId, documentId, jobId, lastVersion, updatedAt, version: 0 };
      const failed = await change({ ...unchanged, status: { $in: [...pendingStates] } }, { status: "failed", error });
      return failed !== null;
    },
  };
}
