/**
 * Terms. A *document* is what a tenant ingested; its text is cut into *chunks*, the units that a query finds. Each
 * (re-)ingest writes a *version* of its chunks; the document's `version` names the one that queries see, 0 being none.
 *
 * A document that is ingested again stays `indexed` with its version until the new one takes over, also when that fails.
 * `deleting` is never shown: it marks a document whose chunks and source are being removed.
 */
export const documentStates = ["queued", "processing", "indexed", "failed", "deleting"] as const;
export type DocumentState = (typeof documentStates)[number];

/** The states that a caller can see and ask for. */
export const shownStates = ["queued", "processing", "indexed", "failed"] as const satisfies readonly DocumentState[];

/** Which states a document may go to from each; the same state means a new version or a new try. */
export const documentTransitions = {
  queued: ["processing", "indexed", "failed", "deleting"],
  processing: ["queued", "processing", "indexed", "failed", "deleting"],
  indexed: ["indexed", "deleting"],
  failed: ["queued", "processing", "indexed", "deleting"],
  deleting: [],
} as const satisfies Record<DocumentState, readonly DocumentState[]>;

/** The states from which a document may go to `to`; the filter of every compare-and-set on a document's state. */
export function documentStatesBefore(to: DocumentState): DocumentState[] {
  return documentStates.filter((from) => (documentTransitions[from] as readonly DocumentState[]).includes(to));
}

/** The states in which a job is expected to be at work on a document that no query sees yet. */
export const pendingStates = ["queued", "processing"] as const satisfies readonly DocumentState[];
