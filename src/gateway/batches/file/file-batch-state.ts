/** States of a batch of OpenAI's surface, as its API names them: https://platform.openai.com/docs/api-reference/batch. */
export const fileBatchStates = [
  "validating",
  "in_progress",
  "finalizing",
  "completed",
  "failed",
  "cancelling",
  "cancelled",
] as const;
export type FileBatchState = (typeof fileBatchStates)[number];

export const finalFileBatchStates: readonly FileBatchState[] = ["completed", "failed", "cancelled"];
export const openFileBatchStates = fileBatchStates.filter((state) => !finalFileBatchStates.includes(state));
/** From which a batch can be cancelled. */
export const cancellableFileBatchStates: readonly FileBatchState[] = ["validating", "in_progress"];
