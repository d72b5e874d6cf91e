/**
 * A *line* is one chat that shall be answered by a batch; it is accepted until its job is on
 * record, and then waits until a batch takes it. A *batch* collects, is closed
 * when it is full or its time has come, is submitted to the provider, and has ended when every line of it has.
 */
export const lineStates = ["accepted", "waiting", "batched", "done", "cancelled"] as const;
export type LineState = (typeof lineStates)[number];

export const batchStates = ["collecting", "closed", "submitted", "ended"] as const;
export type BatchState = (typeof batchStates)[number];
