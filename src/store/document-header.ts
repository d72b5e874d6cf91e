import type { Filter } from "mongodb";
import { type DocumentRecord, documentCollection } from "./document-record.ts";
import { projectionOf } from "./page.ts";

/** The fields of a document that a query needs for its hits. */
export type DocumentHeader = Pick<DocumentRecord, "_id" | (typeof headerFields)[number]> &
  Partial<Pick<DocumentRecord, MoreOfHeader>>;
export type MoreOfHeader = "metadata" | "vectorSpace";
export const headerFields = ["title", "collection", "version", "expiresAt"] as const;

/** A header as a search reads it beside its hits: with the status, since a document that is being deleted shows none. */
export type JoinedHeader = DocumentHeader & Pick<DocumentRecord, "status">;

/** What is read of the documents of chunks. */
export type ReadHeaders = {
  more: readonly MoreOfHeader[];
  /** Keeps only the first chunks whose documents match a filter, up to this number. */
  wanted?: { filter: Filter<DocumentRecord>; limit: number } | undefined;
};

/** The stages that add to each chunk its document's header, as `document`; there is none where the document is gone. */
export const headersStages = ({ more, wanted }: ReadHeaders) => [
  {
    $lookup: {
      from: documentCollection.name,
      localField: "documentId",
      foreignField: "_id",
      pipeline: [
        ...(wanted ? [{ $match: wanted.filter }] : []),
        { $project: projectionOf([...headerFields, "status", ...more]) },
      ],
      as: "document",
    },
  },
  { $unwind: { path: "$document", preserveNullAndEmptyArrays: wanted === undefined } },
  ...(wanted ? [{ $limit: wanted.limit }] : []),
];
