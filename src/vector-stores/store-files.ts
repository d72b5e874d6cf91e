import { cancelWork, unlessOver } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import { notFound } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { type DocumentRecord, isGone } from "../store/document-record.ts";
import { mapPage, type PageQuery } from "../store/page.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { VectorStoreDeps } from "./deps.ts";
import type { FileState } from "./schemas.ts";
import { touch } from "./touch.ts";
import { makeUploads } from "./uploads.ts";
import { toStoreFile } from "./views.ts";

/** Chunks of a file's content that one read brings. */
const CHUNKS_AT_A_TIME = 50;

type Attributes = Record<string, string | number | boolean>;
export type NewStoreFile = { fileId: string; attributes?: Attributes | undefined; batchId?: string };
type FileList = PageQuery & { filter?: FileState | undefined; batchId?: string; isAscending?: boolean };

const statesOf = {
  in_progress: { states: ["queued", "processing"] },
  completed: { states: ["indexed"] },
  failed: { states: ["failed"], isCancelled: false },
  cancelled: { states: ["failed"], isCancelled: true },
} as const;

export type StoreFiles = ReturnType<typeof makeStoreFiles>;

/** The files of vector stores: documents of a collection, made from files of `/v1/files`. */
export function makeStoreFiles({ store, rag, jobs, quotas, batches }: VectorStoreDeps) {
  const { documents } = store;
  const uploads = makeUploads({ store, rag, batches });
  const find = async (caller: Caller, name: string, fileId: string): Promise<DocumentRecord> => {
    await rag.collections.find(caller, name);
    const [document] = await documents.ofFile(caller.tenantId, fileId, { collections: [name], limit: 1 });
    if (!document || isGone(document)) throw notFound("file");
    return document;
  };
  /** Makes the document of a file, of which a job reads it; its id. @throws AppError as `add`, `too_many_concurrent`. */
  const take = async (caller: Caller, name: string, { fileId, attributes, batchId }: NewStoreFile): Promise<string> => {
    const { filename, bytes } = await uploads.findFile(caller, fileId);
    await quotas.check(caller.tenantId, "openJobs");
    const storedFile = { id: fileId, name: filename, bytes, ...defined({ batchId }) };
    const document = { storedFile, collection: name, ...defined({ metadata: attributes }) };
    return (await rag.accept({ caller, document, jobId: newId("job"), isInteractive: false })).documentId;
  };
  return {
    ...uploads,
    take,
    /** Adds a file; one that is there already is read again. @throws AppError `not_found`, `quota_exceeded`. */
    async add(caller: Caller, name: string, given: NewStoreFile) {
      const collection = await rag.collections.find(caller, name);
      const documentId = await take(caller, name, given);
      await touch({ store }, collection);
      const document = await documents.get(caller.tenantId, documentId);
      if (!document) throw notFound("file"); // it has just been deleted
      return toStoreFile(document);
    },
    get: async (caller: Caller, name: string, fileId: string) => toStoreFile(await find(caller, name, fileId)),
    /** Replaces its attributes. @throws AppError `not_found`. */
    async update(caller: Caller, name: string, fileId: string, attributes: Attributes) {
      const { _id } = await find(caller, name, fileId);
      await rag.describe(caller, _id, { metadata: attributes });
      return toStoreFile(await find(caller, name, fileId));
    },
    async list(caller: Caller, name: string, { cursor, filter, batchId, limit, isAscending }: FileList) {
      await rag.collections.find(caller, name);
      const { tenantId } = caller;
      const after = cursor && (await documents.ofFile(tenantId, cursor, { collections: [name], limit: 1 }))[0]?._id;
      if (cursor && after === undefined) throw notFound("file");
      const place = isAscending ? { newerThan: after || "doc_" } : { cursor: after || undefined };
      const asked = { name, limit, ...place, ...defined({ fileBatchId: batchId }) };
      const page = await documents.listFiles(tenantId, { ...asked, ...(filter ? statesOf[filter] : {}) });
      const { data, nextCursor } = mapPage(page, toStoreFile);
      return { data: isAscending ? data.reverse() : data, nextCursor };
    },
    /** Takes a file out of the store; the file itself stays. @throws AppError `not_found`. */
    async remove(caller: Caller, name: string, fileId: string): Promise<void> {
      const { _id } = await find(caller, name, fileId);
      await rag.remove(caller, _id);
    },
    /** The texts of its chunks, some at a time, each read when they are asked for. @throws AppError `not_found`. */
    async content(caller: Caller, name: string, fileId: string): Promise<AsyncIterable<string[]>> {
      const { _id: documentId, version } = await find(caller, name, fileId);
      return textsOf(store, { tenantId: caller.tenantId, documentId, version });
    },
    /** Ends the job of a document that is not indexed yet. */
    async stop({ tenantId, jobId }: DocumentRecord): Promise<void> {
      await unlessOver(cancelWork(jobs, [rag.work], { tenantId, jobId }));
    },
  };
}

async function* textsOf(
  { chunks }: Pick<VectorStoreDeps["store"], "chunks">,
  { tenantId, ...of }: { tenantId: string; documentId: string; version: number },
): AsyncGenerator<string[]> {
  for (let from = 0; ; from += CHUNKS_AT_A_TIME) {
    const found = await chunks.list(tenantId, of, { from, limit: CHUNKS_AT_A_TIME });
    yield found.map(({ content }) => content);
    if (found.length < CHUNKS_AT_A_TIME) return;
  }
}
