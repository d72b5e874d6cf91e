import type { ErrorView } from "../lib/errors.ts";
import { defineCollection, type TenantOwned } from "./collection.ts";
import type { DocumentState } from "./document-state.ts";
import type { DocumentWarning } from "./document-warning.ts";

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
  /** Whether the caller named it; else each reading of the source does. */
  isTitleGiven: boolean;
  source: DocumentSource;
  /** SHA-256 of the URL, with the collection, unique in a tenant: the same URL of a collection is the same document. */
  urlHash?: string;
  /** The caller's own id of it. */
  externalId?: string;
  /** SHA-256 of that id, or of its file's, with the collection, unique in a tenant. */
  externalHash?: string;
  /** Under which id its source is kept; default: its own. */
  sourceId?: string;
  /** Sources that it had before; they go when another version is published. */
  formerSources?: string[];
  fileId?: string;
  /** The batch of files that it was added with. */
  fileBatchId?: string;
  /** No query sees it from then on, and the sweep removes it. */
  expiresAt?: Date;
  /** By what the server of its URL knows the version that queries see. */
  validators?: SourceValidators;
  /** The job that made the version that queries see; an earlier release noted none. */
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
  /** What of its source the version that queries see does not hold; an earlier release noted none. */
  warnings?: DocumentWarning[];
  /** Whether a source of which something would be lost is refused. */
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
    { name: "list", key: { tenantId: 1, status: 1, _id: -1 } },
    { name: "collection", key: { tenantId: 1, collection: 1, status: 1, _id: -1 } },
    { name: "tags", key: { tenantId: 1, tags: 1 } },
    { name: "content", key: { tenantId: 1, contentHash: 1 } },
    { name: "vectorSpace", key: { tenantId: 1, vectorSpace: 1, _id: 1 } },
    { name: "unfinished", key: { status: 1, updatedAt: 1 } },
  ],
});

/** Whether a document has expired, though the sweep has not come to it yet: no caller sees it. */
export const isGone = ({ expiresAt }: Pick<DocumentRecord, "expiresAt">): boolean =>
  expiresAt !== undefined && expiresAt.getTime() <= Date.now();

/** Under which ids a document keeps sources of its own: not the file that it is. */
export function ownSources({ _id, source, sourceId = _id, formerSources = [] }: DocumentRecord): string[] {
  return source.kind === "url" || source.fileId !== undefined ? formerSources : [...formerSources, sourceId];
}
