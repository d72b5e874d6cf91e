import type { DocumentRecord, SourceValidators } from "./document-record.ts";
import type { DocumentWarning } from "./document-warning.ts";

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
export type Publication = Pick<DocumentRecord, "version" | "chunks" | "publishedBy"> & {
  type: string;
  title?: string;
  contentHash: string;
  vectorSpace: string;
  warnings: DocumentWarning[];
  validators?: SourceValidators;
  duplicateOf: string | null;
};

/** What is said of a document besides its text. */
export type Description = {
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
