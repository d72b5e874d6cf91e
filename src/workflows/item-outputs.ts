import type { EndedItem, WorkflowItemRecord } from "../store/workflow-step-store.ts";

/** Longest list of outputs, in characters of JSON: as long as expressions may read twice over, with room for the run's others. */
const MAX_LIST = 4_000_000;
/** About how many bytes of an item's record are not its output. */
const BYTES_BESIDE = 400;

/**
 * The outputs of a list's items in order, as JSON. Where they are too long together, the longest are left on their items: in the
 * place of each stands `{ ref, characters }`, and the list of the run's items has it. An item that failed is `{ error }`.
 */
export async function joinOutputs(
  ended: readonly EndedItem[],
  items: AsyncIterable<WorkflowItemRecord>,
): Promise<string> {
  const longest = findLongest(ended.map(({ bytes = 0 }) => Math.max(0, bytes - BYTES_BESIDE)));
  const parts: string[] = [];
  for await (const { path, status, output = "null", error } of items) {
    if (status === "failed") parts.push(JSON.stringify({ error: { code: error?.code, message: error?.message } }));
    else if (output.length <= longest) parts.push(output);
    else parts.push(JSON.stringify({ ref: path, characters: output.length }));
  }
  return `[${parts.join(",")}]`;
}

/** The longest output that may stand in a list, so that the shorter ones do. */
function findLongest(lengths: readonly number[]): number {
  const sorted = [...lengths].sort((a, b) => a - b);
  let left = MAX_LIST;
  for (const length of sorted) {
    left -= length + 1;
    if (left < 0) return length - 1;
  }
  return Number.POSITIVE_INFINITY;
}
