import { AppError, notFound } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import { expiryAfter, type FileRecord } from "../../store/file-store.ts";
import type { OpenedSource } from "../../store/source-store.ts";
import type { Store } from "../../store/store.ts";

/** Files of requests, and of answers to them, as OpenAI's clients see them. */
export function makeRequestFiles({ files, sources }: Pick<Store, "files" | "sources">) {
  const findFile = async (tenantId: string, fileId: string) => {
    const file = await files.find(tenantId, fileId);
    if (file === null) throw notFound("file");
    return file;
  };
  const requireUnused = async (tenantId: string, fileId: string): Promise<void> => {
    if (await files.isInUse(tenantId, fileId))
      throw new AppError("wrong_state", "A batch that has not ended reads this file.");
  };
  const discard = async (tenantId: string, fileId: string): Promise<void> => {
    await sources.remove(tenantId, fileId); // first: a call that is repeated still finds the file
    await files.remove(tenantId, fileId);
  };
  return {
    /** @throws AppError `wrong_state` while a batch reads the file. */
    requireUnused,
    async addFile(
      tenantId: string,
      { bytes, ...about }: Pick<FileRecord, "filename" | "purpose" | "keyId"> & { bytes: Uint8Array },
    ): Promise<FileRecord> {
      const _id = newId("file");
      const file = { _id, tenantId, ...about, bytes: bytes.length, createdAt: new Date() };
      await sources.write(tenantId, _id, { bytes });
      await files.ensure(file);
      return file;
    },
    /** Keeps contents as they come, under the id of a file that is not there yet. What a failure leaves is removed. */
    async keepContent(tenantId: string, chunks: AsyncIterable<Buffer>) {
      const id = newId("file");
      const remove = () => sources.remove(tenantId, id);
      try {
        return { id, bytes: await sources.ensureStream(tenantId, id, { chunks }), remove };
      } catch (error) {
        await remove();
        throw error;
      }
    },
    /** The file whose contents were kept. */
    addKept(
      tenantId: string,
      {
        expiresAfter,
        ...about
      }: Pick<FileRecord, "_id" | "filename" | "purpose" | "keyId" | "bytes"> & {
        /** In seconds. */
        expiresAfter: number | undefined;
      },
    ) {
      const createdAt = new Date();
      return files.ensure({ tenantId, ...about, createdAt, ...expiryAfter(createdAt, expiresAfter) });
    },
    /** @throws AppError `not_found`. */
    file: findFile,
    /** @throws AppError `not_found`. */
    async content(tenantId: string, fileId: string): Promise<Buffer> {
      await findFile(tenantId, fileId);
      const bytes = await sources.read(tenantId, fileId);
      if (bytes === null) throw notFound("file");
      return bytes;
    },
    /** The content in pieces; see `open` of the source store. @throws AppError `not_found`. */
    async openContent(tenantId: string, fileId: string): Promise<OpenedSource> {
      const opened = await sources.open(tenantId, fileId);
      if (opened === null) throw notFound("file");
      return opened;
    },
    /** @throws AppError `not_found`; `wrong_state` while a batch reads it. */
    async removeFile(tenantId: string, fileId: string): Promise<void> {
      await findFile(tenantId, fileId);
      await requireUnused(tenantId, fileId);
      await discard(tenantId, fileId);
    },
    /** The same for a file that nobody finds any more; without effect if it is not there. @throws AppError `unavailable`. */
    removeExpired: discard,
  };
}
