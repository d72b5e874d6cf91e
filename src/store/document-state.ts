/**
 * Each ingestion of a document writes a *version* of its chunks. Its `version` is the one that queries see; 0 means none.
 *
 * A document that is ingested again stays `indexed` with its old version until the new one is complete, also if that fails.
 * `deleting` is never shown: it marks a document whose chunks and source are being removed.
 */
export const documentStates = ["queued", "processing", "indexed", "failed", "deleting"] as const;
export type DocumentState = (typeof documentStates)[number];

/** The states that a caller can see and filter by. */
export const shownStates = ["queued", "processing", "indexed", "failed"] as const satisfies readonly DocumentState[];

/** The allowed transitions; one to the same state means a new version or a new attempt. */
export const documentTransitions = {
  queued: ["processing", "indexed", "failed", "deleting"],
  processing: ["queued", "processing", "indexed", "failed", "deleting"],
  indexed: ["indexed", "deleting"],
  failed: ["queued", "processing", "indexed", "deleting"],
  deleting: [],
} as const satisfies Record<DocumentState, readonly DocumentState[]>;

/** The states from which a document may go to `to`: the filter of each compare-and-set on a document's state. */
export function documentStatesBefore(to: DocumentState): DocumentState[] {
  return documentStates.filter((from) => (documentTransitions[from] as readonly DocumentState[]).includes(to));
}

/** The states of a document that no query sees yet, while a job works on it. */
export const pendingStates = ["queued", "processing"] as const satisfies readonly DocumentState[];
