import { reindexQueue } from "../jobs/queues.ts";
import { Rescheduled } from "../jobs/reschedule.ts";
import { defineWork, recordsOf, submitWork, type Work, type WorkContext } from "../jobs/work.ts";
import { AppError } from "../lib/errors.ts";
import { forEachConcurrent } from "../lib/for-each-concurrent.ts";
import { newId } from "../lib/ids.ts";
import type { ReindexRecord } from "../store/reindex-store.ts";
import { toSpaceKey, type VectorSpace } from "../store/vector-space.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { RagDeps } from "./deps.ts";
import { endsJob } from "./index-document.ts";
import { type Move, moveDocument } from "./move-document.ts";
import type { ReindexResult } from "./settings-schemas.ts";

const DOCUMENTS_AT_ONCE = 4;
const PAGE = 50;
/** How often all that is left is looked through: documents may have been at work by themselves, or come by a former model. */
const MAX_PASSES = 3;
const MAX_SPACES = 20; // models of one tenant that are looked at in one pass
/** After this time, in ms, a job lets others have its turn, and is continued. */
const TURN_MS = 10 * 60_000;
/** What is embedded to learn how long a model's vectors are. */
const PROBE = "dimensions";

/** The move of a tenant's documents to its present embedding model, as durable work. */
export function makeReindexWork(deps: RagDeps): Work {
  const { reindexes } = deps.store;
  return defineWork({
    queue: reindexQueue,
    idField: "reindexId",
    run: (context) => reindex(deps, context),
    ...recordsOf(reindexes),
    closeOrphan: ({ tenantId, _id }) => reindexes.finish(tenantId, _id),
  });
}

export type ReindexInput = { caller: Caller; jobId: string; isInteractive: boolean };

/**
 * Begins to move all documents of a tenant to the model that it has chosen.
 * @throws AppError `wrong_state` while it is being done; `provider_not_configured`, `budget_exhausted`, `unavailable`.
 */
export async function acceptReindex(deps: RagDeps & { work: Work }, { caller, jobId, isInteractive }: ReindexInput) {
  const { tenantId, keyId, subject: startedBy } = caller;
  const chosen = await deps.embeddingModels.read(tenantId);
  const model = await deps.gateway.checkEmbeddingModel(tenantId, chosen, "embeddingModel");
  const now = new Date();
  const _id = newId("reindex");
  const made: ReindexRecord = {
    _id,
    tenantId,
    jobId,
    keyId,
    model,
    moved: 0,
    isOpen: true,
    createdAt: now,
    updatedAt: now,
  };
  const isNew = await deps.store.reindexes.insertOnly(made);
  const open = isNew ? made : await deps.store.reindexes.findOpen(tenantId);
  // An earlier attempt at this call may have recorded it.
  if (open?.jobId !== jobId) {
    const message = "Your documents are being moved already: follow that job, or cancel it.";
    throw new AppError("wrong_state", message, { ...(open ? { details: { jobId: open.jobId } } : {}) });
  }
  const title = `documents to ${open.model}`;
  return { job: await submitWork(deps.jobs, deps.work, { record: open, isInteractive, title, startedBy, keyId }) };
}

/** Moves documents until none is left that can be moved. What an earlier attempt has moved is not looked at again. */
async function reindex(deps: RagDeps, context: WorkContext): Promise<ReindexResult> {
  const { tenantId, recordId } = context;
  const { reindexes } = deps.store;
  const record = await reindexes.begin(tenantId, recordId);
  if (!record) return resultOfEarlier(await reindexes.get(tenantId, recordId));
  try {
    const { model, keyId, moved } = record;
    const space = { model, dimensions: record.dimensions ?? (await probe(deps, context, record)) };
    const left = await countLeft(deps, tenantId, space);
    const run = { space, keyId, until: performance.now() + TURN_MS, moved, left };
    for (let pass = 0; pass < MAX_PASSES; pass += 1) {
      run.left = await countLeft(deps, tenantId, space);
      const before = run.moved;
      if (run.left > 0) await moveAll(deps, context, run);
      if (run.moved === before) break;
    }
    const result = { model, moved: run.moved, left: await countLeft(deps, tenantId, space) };
    await reindexes.finish(tenantId, recordId, { left: result.left });
    return result;
  } catch (error) {
    if (error instanceof Rescheduled || !endsJob(error, context)) throw error;
    if (!context.signal.aborted) await context.confirm();
    await reindexes.finish(tenantId, recordId);
    throw error;
  }
}

/** The result of a move that another attempt has brought to its end. @throws AppError `cancelled` where none has. */
function resultOfEarlier(record: ReindexRecord | null): ReindexResult {
  if (record?.left === undefined) throw new AppError("cancelled", "The documents are not moved any more.");
  const { model, moved, left } = record;
  return { model, moved, left };
}

type Run = Move & { until: number; moved: number; left: number };

/** Notes that a document was moved, of about `total`. */
async function noteMoved(
  { store: { reindexes } }: RagDeps,
  { tenantId, recordId, progress }: WorkContext,
  { run, total }: { run: Run; total: number },
): Promise<void> {
  run.moved += 1;
  await reindexes.addMoved(tenantId, recordId);
  await progress({ stage: "embedding", done: run.moved, total: Math.max(total, run.moved) });
}

/** Moves each document that is in another space, in the order of ids. */
async function moveAll(deps: RagDeps, context: WorkContext, run: Run): Promise<void> {
  const { tenantId } = context;
  const { documents } = deps.store;
  const total = run.moved + run.left;
  for (const from of await documents.spaces(tenantId, MAX_SPACES)) {
    if (from === toSpaceKey(run.space)) continue;
    for (let after = "", length = PAGE; length === PAGE; ) {
      await requirePresent(deps, tenantId, run.space.model);
      const page = await documents.idsInSpace(tenantId, { space: from, after, limit: PAGE });
      after = page.at(-1) ?? after;
      length = page.length;
      await forEachConcurrent(page, DOCUMENTS_AT_ONCE, async (documentId) => {
        if (await moveDocument(deps, context, { documentId, move: run }))
          await noteMoved(deps, context, { run, total });
      });
      if (performance.now() > run.until) throw new Rescheduled(0, "queued");
    }
  }
}

/** @throws AppError `wrong_state` when the tenant has chosen another model since. */
async function requirePresent({ embeddingModels }: RagDeps, tenantId: string, model: string): Promise<void> {
  const present = await embeddingModels.read(tenantId);
  if (present === model) return;
  const message = `The embedding model has been changed to ${present} meanwhile: start again to move the documents to that.`;
  throw new AppError("wrong_state", message);
}

async function probe(deps: RagDeps, { tenantId, recordId, jobId, signal }: WorkContext, record: ReindexRecord) {
  const { model, keyId } = record;
  const caller = { tenantId, keyId, surface: "reindex", signal, origin: { jobId } };
  const [vector] = (await deps.gateway.embed(caller, { model, input: [PROBE], isGuarded: true })).embeddings;
  if (!vector) throw new TypeError("the gateway gave no embedding");
  await deps.store.reindexes.setDimensions(tenantId, recordId, vector.length);
  return vector.length;
}

/** How many documents are in other spaces. */
async function countLeft({ store: { documents } }: RagDeps, tenantId: string, space: VectorSpace): Promise<number> {
  const others = (await documents.spaces(tenantId, MAX_SPACES)).filter((key) => key !== toSpaceKey(space));
  const counts = await Promise.all(others.map((key) => documents.countInSpace(tenantId, key)));
  return counts.reduce((sum, count) => sum + count, 0);
}
