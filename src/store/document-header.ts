import { type DocumentRecord, documentCollection } from "./document-record.ts";
import { projectionOf } from "./page.ts";

/** What a query needs of the documents that it found. */
export type DocumentHeader = Pick<DocumentRecord, "_id" | (typeof headerFields)[number]> &
  Partial<Pick<DocumentRecord, MoreOfHeader>>;
export type MoreOfHeader = "metadata" | "vectorSpace";
export const headerFields = ["title", "collection", "version", "expiresAt"] as const;

/** A header as a search reads it beside its hits: with the status, since a document that is being deleted shows none. */
export type JoinedHeader = DocumentHeader & Pick<DocumentRecord, "status">;

/** The stage that adds to each chunk its document's header, in an array under `document`. */
export const headersStage = (more: readonly MoreOfHeader[]) => ({
  $lookup: {
    from: documentCollection.name,
    localField: "documentId",
    foreignField: "_id",
    pipeline: [{ $project: projectionOf([...headerFields, "status", ...more]) }],
    as: "document",
  },
});
