import { DEFAULT_COLLECTION } from "../store/collection-filter.ts";
import type { CollectionRecord } from "../store/collection-store.ts";
import type { VectorStoreDeps } from "./deps.ts";

/** A use within this time of the last recorded one, in ms, is not recorded: a store's expiry is counted in days. */
const NOTED_EVERY_MS = 60_000;

/** Notes that a store is used, which puts off its expiry. */
export async function touch({ store }: Pick<VectorStoreDeps, "store">, record: CollectionRecord): Promise<void> {
  const isNoted = Date.now() - record.lastActiveAt.getTime() < NOTED_EVERY_MS;
  if (!isNoted && record.name !== DEFAULT_COLLECTION) await store.collections.use(record);
}
