import type { ErrorView } from "../lib/errors.ts";
import { defineCollection, type TenantOwned } from "./collection.ts";
import type { DocumentState } from "./document-state.ts";

/** What a warning of a document is about. */
export const documentWarningCodes = [
  "pages_without_text",
  "unreadable_fonts",
  "parts_left_out",
  "charset_uncertain",
  "text_left_out",
  "read_by_ocr",
] as const;

/** Pages that a warning names. */
export const MAX_WARNED_PAGES = 100;

/** Something of its source that a document does not hold, or may hold wrongly. */
export type DocumentWarning = {
  code: (typeof documentWarningCodes)[number];
  message: string;
  /** From 1. */
  pages?: number[] | undefined;
};

/** Facts about a document that queries can filter on. */
export type DocumentMetadata = Record<string, string | number | boolean>;

/** Where a document comes from. `bytes` is the size of what was given; a URL has none before it is fetched. */
export type DocumentSource = {
  kind: "url" | "content" | "file";
  url?: string;
  name?: string;
  type?: string;
  bytes?: number;
  /** The file of `/v1/files` that it is, whose bytes are kept there. */
  fileId?: string;
};

/** `ETag` and `Last-Modified` of a source. */
export type SourceValidators = { etag?: string; lastModified?: string };

export type DocumentRecord = TenantOwned & {
  title: string;
  /** Absent in the collection `default`. */
  collection?: string;
  /** Whether the caller chose the title. Otherwise each parse of the source sets it. */
  isTitleGiven: boolean;
  source: DocumentSource;
  /** SHA-256 of the URL, with the collection, unique in a tenant: the same URL of a collection is the same document. */
  urlHash?: string;
  /** The caller's own id of it. */
  externalId?: string;
  /** SHA-256 of that id, or of its file's, with the collection, unique in a tenant. */
  externalHash?: string;
  /** Id under which its source is stored; default: the document's id. */
  sourceId?: string;
  /** Its former sources. They are removed when another version is published. */
  formerSources?: string[];
  fileId?: string;
  /** The batch of files that it was added with. */
  fileBatchId?: string;
  /** When it expires: queries no longer see it, and the sweep removes it. */
  expiresAt?: Date;
  /** `ETag` and `Last-Modified` of the version that queries see. */
  validators?: SourceValidators;
  /** Job that made the version that queries see. Absent in records of earlier releases. */
  publishedBy?: string;
  /** The job that reads its URL again if that has changed. */
  refreshJobId?: string;
  /** How often its URL is read again, when it is next, and how often in a row that failed; no time: it failed too often. */
  refreshEveryHours?: number;
  refreshAt?: Date;
  refreshFailures?: number;
  status: DocumentState;
  /** The version of the chunks that queries see; 0 before there is one. */
  version: number;
  /** The last version that was begun: every try of every job writes its own. */
  lastVersion: number;
  chunks: number;
  /** Versions whose attempts have failed, the newest 50: these are not published any more. */
  refused?: number[];
  /** Set when a version is begun, until none but the visible one has chunks: when a sweep looks for those that died attempts left. */
  straysAt?: Date;
  metadata: DocumentMetadata;
  /** The metadata as `key=json`, for an index on any of them. */
  tags: string[];
  error?: ErrorView;
  createdAt: Date;
  updatedAt: Date;
  /** The last job that was given the document. */
  jobId: string;
  /** The key by which it was ingested: model calls are counted to it. */
  keyId: string;
  /** SHA-256 of the source's bytes, of the version that queries see. */
  contentHash?: string;
  /** Warnings about contents of the source that the visible version lacks. Absent in records of earlier releases. */
  warnings?: DocumentWarning[];
  /** Whether a source is refused if some of its contents would be lost. */
  requireComplete?: boolean;
  /** A document that had the same content when this one was indexed. */
  duplicateOf?: string;
  /** The space of its chunks' vectors, of the version that queries see; see `vector-space.ts`. */
  vectorSpace?: string;
};

export const documentCollection = defineCollection<DocumentRecord>({
  name: "documents",
  indexes: [
    {
      name: "url",
      key: { tenantId: 1, urlHash: 1 },
      unique: true,
      partialFilterExpression: { urlHash: { $exists: true } },
    },
    {
      name: "external",
      key: { tenantId: 1, externalHash: 1 },
      unique: true,
      partialFilterExpression: { externalHash: { $exists: true } },
    },
    {
      name: "file",
      key: { tenantId: 1, fileId: 1 },
      partialFilterExpression: { fileId: { $exists: true } },
    },
    {
      name: "file_batch",
      key: { tenantId: 1, fileBatchId: 1, _id: -1 },
      partialFilterExpression: { fileBatchId: { $exists: true } },
    },
    { name: "expiring", key: { expiresAt: 1 }, sparse: true },
    { name: "refreshing", key: { refreshAt: 1 }, sparse: true },
    { name: "strays", key: { straysAt: 1 }, sparse: true },
    { name: "list", key: { tenantId: 1, status: 1, _id: -1 } },
    { name: "collection", key: { tenantId: 1, collection: 1, status: 1, _id: -1 } },
    { name: "tags", key: { tenantId: 1, tags: 1 } },
    { name: "content", key: { tenantId: 1, contentHash: 1 } },
    { name: "vectorSpace", key: { tenantId: 1, vectorSpace: 1, _id: 1 } },
    { name: "unfinished", key: { status: 1, updatedAt: 1 } },
  ],
});

/** Whether a document has expired. No caller sees it, even before the sweep has removed it. */
export const isGone = ({ expiresAt }: Pick<DocumentRecord, "expiresAt">): boolean =>
  expiresAt !== undefined && expiresAt.getTime() <= Date.now();

/** Ids of the sources that belong to the document itself. A file of `/v1/files` is not among them. */
export function ownSources({ _id, source, sourceId = _id, formerSources = [] }: DocumentRecord): string[] {
  return source.kind === "url" || source.fileId !== undefined ? formerSources : [...formerSources, sourceId];
}
