import { sweepEach } from "../jobs/sweep-each.ts";
import { notFound } from "../lib/errors.ts";
import type { FileRecord } from "../store/file-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { VectorStoreDeps } from "./deps.ts";

/** Expired files that one sweep removes, and how long one is left that a batch still reads, in ms. */
const SWEPT = 100;
const POSTPONED_MS = 60_000;

/** Whether a caller may use a file: a key that is limited to collections uses those alone that it uploaded. */
const mayUseFile = ({ collections, keyId }: Caller, file: FileRecord): boolean =>
  collections === undefined || file.keyId === keyId;

/** Files of `/v1/files`, as far as vector stores have to do with them. */
export function makeUploads({ store, rag, batches }: Pick<VectorStoreDeps, "store" | "rag" | "batches">) {
  const findFile = async (caller: Caller, fileId: string) => {
    const file = await store.files.find(caller.tenantId, fileId);
    if (!file || !mayUseFile(caller, file)) throw notFound("file");
    return file;
  };
  const removeExpired = async (file: FileRecord): Promise<void> => {
    const { tenantId, _id: fileId } = file;
    if (await store.files.isInUse(tenantId, fileId)) {
      return store.files.postponeRemoval(file, new Date(Date.now() + POSTPONED_MS));
    }
    await rag.removeOfFile(tenantId, fileId);
    await batches.files.removeExpired(tenantId, fileId);
    await rag.removeOfFile(tenantId, fileId);
  };
  return {
    /** @throws AppError `not_found`. */
    findFile,
    /** @throws AppError `not_found` when one of these files is not there, or is another key's. */
    async requireAll(caller: Caller, fileIds: readonly string[]): Promise<void> {
      const found = await store.files.findAll(caller.tenantId, fileIds);
      if (found.filter((file) => mayUseFile(caller, file)).length < fileIds.length) throw notFound("file");
    },
    /**
     * Deletes a file with its documents in all stores. They go first: a call that was cut leaves the file, and its repetition
     * ends it. Those that another call adds meanwhile go last. @throws AppError `not_found`, `wrong_state`.
     */
    async deleteFile(caller: Caller, fileId: string): Promise<void> {
      const { tenantId } = caller;
      await findFile(caller, fileId);
      await batches.files.requireUnused(tenantId, fileId);
      await rag.removeOfFile(tenantId, fileId);
      await batches.files.removeFile(tenantId, fileId);
      await rag.removeOfFile(tenantId, fileId);
    },
    /** Removes files that have expired, as `deleteFile` does. Run it on a schedule. */
    async sweepExpired(): Promise<void> {
      const expired = await store.files.expiredFiles({ before: new Date(), limit: SWEPT });
      await sweepEach(expired, removeExpired);
    },
  };
}
