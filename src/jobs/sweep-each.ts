import { isStoreUnavailable } from "../store/store-errors.ts";

/**
 * Does the work of a sweep for one item after the other, for those after a failure too: what is broken in one keeps no other
 * waiting. @throws the first failure, at the end; at once while the store is unavailable, which is the same for all.
 */
export async function sweepEach<T>(items: Iterable<T>, work: (item: T) => Promise<unknown>): Promise<void> {
  const failures: unknown[] = [];
  for (const item of items) {
    try {
      await work(item);
    } catch (error) {
      if (isStoreUnavailable(error)) throw error;
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
