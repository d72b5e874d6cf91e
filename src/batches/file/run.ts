import type { BudgetRejection } from "../../gateway/money/budget.ts";
import type { Jobs } from "../../jobs/jobs.ts";
import { batchQueue } from "../../jobs/queues.ts";
import { Rescheduled } from "../../jobs/reschedule.ts";
import { unlessOver, type WorkContext } from "../../jobs/work.ts";
import { defined } from "../../lib/defined.ts";
import { AppError, isBudgetExhausted, isOfPart, toErrorView } from "../../lib/errors.ts";
import { forEachConcurrent } from "../../lib/for-each-concurrent.ts";
import { hashDigits } from "../../lib/ids.ts";
import { jittered } from "../../lib/jitter.ts";
import { inOwnPart } from "../../net/call-scope.ts";
import {
  cancellableFileBatchStates,
  type FileBatchFault,
  type FileBatchRecord,
  type FileBatchState,
} from "../../store/file-store.ts";
import { isFinal, type JobState } from "../../store/job-state.ts";
import type { Store } from "../../store/store.ts";
import { beginItem, type ItemDeps } from "./begin-item.ts";
import { type BatchEndpoint, checkLines, messagesEndpoint, readLines } from "./read-lines.ts";
import { writeAnswers } from "./write-answers.ts";

/** What files and their batches work with. `pollMs`: longest pause between two looks at the items. */
export type FileBatchDeps = ItemDeps & {
  store: Pick<Store, "batches" | "files" | "sources" | "jobs">;
  jobs: Jobs;
  pollMs: number;
};

/** Items that are submitted at once, in one part of a tenant's work; and their characters together, but for one that is larger. */
const ITEMS_AT_ONCE = 16;
const CHARACTERS_AT_ONCE = 1 << 20;
/** Items whose jobs are looked for in one part of a tenant's work. */
const ITEMS_A_LOOK = 500;
/** The least pause after a look at all items, in times of the look. */
const PAUSES_A_LOOK = 10;
/** How long a job makes items at a time, in ms; then it is continued later. */
const TURN_MS = 5 * 60_000;
/** The first pause between two looks at the items, in ms. */
const FIRST_POLL_MS = 1_000;
/** How long after its creation a batch waits for room in its tenant's budget, in ms: its completion window. */
const WINDOW_MS = 86_400_000;

type Run = { tenantId: string; batchId: string } & Pick<WorkContext, "signal" | "share">;

/** Moves a batch on to a state from one of some others; null when it is in none of them. */
export function moveBatch(
  files: Store["files"],
  batch: FileBatchRecord,
  from: readonly FileBatchState[],
  to: { status: FileBatchState; faults?: FileBatchFault[] },
): Promise<FileBatchRecord | null> {
  const now = new Date();
  return files.changeBatch(batch, from, { $set: { ...to, updatedAt: now, [`reachedAt.${to.status}`]: now } });
}

/**
 * Advances a client's batch as far as possible now: reads its file, makes a job of each line, and when all have ended writes
 * their answers into files. Each step can be done twice.
 * @throws Rescheduled while items are under way.
 */
export async function runFileBatch(deps: FileBatchDeps, run: Run): Promise<void> {
  const { files } = deps.store;
  const batch = await files.findBatch(run.tenantId, run.batchId);
  if (batch === null) return;
  if (batch.status === "validating") {
    const { total, faults } = await checkLines(inputOf(deps.store, batch), endpointOf(batch), run.share);
    if (faults.length > 0) return void (await moveBatch(files, batch, ["validating"], { status: "failed", faults }));
    const validated = await files.changeBatch(batch, ["validating"], { $set: { total } });
    const isThrough = validated === null || (await submitItems(deps, { batch: validated, ...run }));
    await moveBatch(files, batch, ["validating"], { status: "in_progress" });
    if (!isThrough) throw new Rescheduled(jittered(FIRST_POLL_MS));
  } else if (batch.status === "in_progress" && !(await submitItems(deps, { batch, ...run }))) {
    throw new Rescheduled(jittered(FIRST_POLL_MS));
  }
  await finish(deps, run);
}

const atOnce: WorkContext["share"] = (part) => part();
const endpointOf = ({ endpoint }: FileBatchRecord) => endpoint as BatchEndpoint; // checked when it was made
const inputOf = ({ sources }: Pick<Store, "sources">, { tenantId, inputFileId }: FileBatchRecord) =>
  sources.stream(tenantId, inputFileId);

/** The requests of a batch, one after the other: a file may be larger than what a worker holds. */
export const readInput = (
  store: Pick<Store, "sources">,
  batch: FileBatchRecord,
  share: WorkContext["share"] = atOnce,
) => readLines(inputOf(store, batch), endpointOf(batch), share);

type Submission = { batch: FileBatchRecord } & Pick<WorkContext, "signal" | "share">;
type Item = { jobId: string; body: unknown; characters: number };

/**
 * Makes a job of each line that has none, as far as the budget has room for them; false when there is more to do than one turn
 * allows. While the batch is validated also of each line whose job has not ended, and of embeddings always: one that waits was
 * begun by a worker that died. The lines are read a few at a time, as their jobs are made.
 */
async function submitItems(deps: FileBatchDeps, { batch, signal, share }: Submission): Promise<boolean> {
  const endsAt = performance.now() + TURN_MS;
  const states = await itemStates(deps.store, batch, share);
  const isRepeated = batch.status === "validating" || batch.endpoint === "/v1/embeddings";
  const isTaken = (state: JobState | undefined) => state !== undefined && (!isRepeated || isFinal(state));
  if (states.size === batch.total && states.values().every(isTaken)) return true;
  let goesOn = true;
  const items = async function* (): AsyncGenerator<Item> {
    let place = 0;
    for await (const { body, characters } of readInput(deps.store, batch, share)) {
      if (place === batch.total || !goesOn) return;
      const jobId = itemJobId(batch, place++);
      if (!isTaken(states.get(jobId))) yield { jobId, body, characters };
    }
  };
  // An embedding's provider may take long to answer: then only what the store keeps of it has a turn.
  const inTurn: WorkContext["share"] = batch.endpoint === "/v1/embeddings" ? (part) => part() : share;
  const submit = async (item: Item) => {
    signal.throwIfAborted();
    if (goesOn && !(await submitItem(deps, batch, { ...item, signal, share }))) goesOn = false;
  };
  for await (const few of inGroups(items())) {
    if (performance.now() > endsAt) return false;
    await inTurn(() => forEachConcurrent(few, ITEMS_AT_ONCE, submit));
    if (!(await takesItems(deps, batch))) {
      // Who stops the batch stops the jobs that it sees; these may have come later.
      for (const { jobId } of few) await unlessOver(deps.jobs.cancel(batch.tenantId, jobId));
      goesOn = false;
    }
    if (!goesOn) return true;
  }
  return true;
}

/** Items in groups that may be in memory together. */
async function* inGroups(items: AsyncIterable<Item>): AsyncGenerator<Item[]> {
  let group: Item[] = [];
  let size = 0;
  for await (const item of items) {
    group.push(item);
    size += item.characters;
    if (group.length < ITEMS_AT_ONCE && size < CHARACTERS_AT_ONCE) continue;
    yield group;
    [group, size] = [[], 0];
  }
  if (group.length > 0) yield group;
}

/** Whether a batch has not been stopped or ended since it was read. */
async function takesItems({ store }: FileBatchDeps, { tenantId, _id }: FileBatchRecord): Promise<boolean> {
  const current = await store.files.findBatch(tenantId, _id);
  return current !== null && cancellableFileBatchStates.includes(current.status);
}

/** Whether calls under way may leave room in the budget for what it had none for, within the batch's time. */
function mayFitLater(error: AppError, { createdAt }: FileBatchRecord): boolean {
  if (!isBudgetExhausted(error) || Date.now() - createdAt.getTime() > WINDOW_MS) return false;
  const { reservedUsd, leftUsd, neededUsd } = error.details as BudgetRejection; // as the budget's own rejections have
  return reservedUsd > 0 || leftUsd >= neededUsd; // what was reserved may have been released since
}

/** Makes the job of a line; false when it has to wait for room in the budget. */
async function submitItem(
  deps: FileBatchDeps,
  batch: FileBatchRecord,
  { jobId, body, signal, share }: Pick<Item, "jobId" | "body"> & Pick<Submission, "signal" | "share">,
): Promise<boolean> {
  const { jobs } = deps;
  const { tenantId, startedBy, keyId } = batch;
  const shown = defined({ startedBy, keyId });
  const held = { queue: batchQueue, tenantId, jobId, subject: { batchId: batch._id }, isRetried: true, ...shown };
  try {
    await inOwnPart(() => beginItem(deps, batch, { held, body, signal, share }));
  } catch (error) {
    if (!(error instanceof AppError) || signal.aborted || isOfPart(error)) throw error;
    if (batch.endpoint !== "/v1/embeddings" && mayFitLater(error, batch)) return false;
    await jobs.held.hold(held);
    await jobs.held.end(jobId, { error: toErrorView(error) });
  }
  return true;
}

/** Writes the answers when every item has ended, else counts those that have. */
async function finish(deps: FileBatchDeps, { tenantId, batchId, share }: Run): Promise<void> {
  const { files } = deps.store;
  const batch = await files.findBatch(tenantId, batchId);
  if (batch === null || batch.status === "completed" || batch.status === "cancelled") return;
  const isCancelled = batch.status === "cancelling";
  if (isCancelled) await cancelItems(deps, batch); // some were begun while it was being cancelled
  const lookedAt = performance.now();
  const stateOf = await itemStates(deps.store, batch, share);
  const tookMs = performance.now() - lookedAt;
  const states = [...stateOf.values()];
  const completed = states.filter((state) => state === "completed").length;
  const failed = states.filter((state) => state === "failed").length;
  const counted = await files.changeBatch(batch, [batch.status], { $set: { completed, failed } });
  const expected = isCancelled ? states.length : batch.total; // a cancelled batch makes no more jobs
  if (states.filter(isFinal).length < expected) {
    const ageMs = Date.now() - batch.createdAt.getTime();
    const waitMs = Math.min(Math.max(FIRST_POLL_MS, ageMs / 10), deps.pollMs);
    throw new Rescheduled(Math.max(waitMs, PAUSES_A_LOOK * tookMs));
  }
  if (counted === null) throw new Rescheduled(FIRST_POLL_MS); // it is being cancelled just now
  await moveBatch(files, batch, ["in_progress"], { status: "finalizing" });
  const lines = () => readInput(deps.store, batch, share);
  await writeAnswers(deps, { batch, lines, jobIdOf: (place) => itemJobId(batch, place), stateOf });
  await moveBatch(files, batch, ["finalizing", "cancelling"], { status: isCancelled ? "cancelled" : "completed" });
  if (batch.endpoint === messagesEndpoint) await deps.store.sources.remove(tenantId, batch.inputFileId); // nothing else reads it
}

/** Cancels the jobs of a batch's items; an item that has ended meanwhile keeps its answer. */
export async function cancelItems({ jobs, store }: FileBatchDeps, batch: FileBatchRecord): Promise<void> {
  const { tenantId } = batch;
  for (const [jobId, state] of await itemStates(store, batch)) {
    if (!isFinal(state)) await jobs.cancel(tenantId, jobId).catch(ignoreEnded);
  }
}

function ignoreEnded(error: unknown): void {
  if (!(error instanceof AppError) || error.code !== "wrong_state") throw error;
}

/** The states of the jobs that a batch's items have by now, looked at in turns. */
export async function itemStates(
  { jobs }: Pick<Store, "jobs">,
  batch: FileBatchRecord,
  share: WorkContext["share"] = atOnce,
): Promise<Map<string, JobState>> {
  const states = new Map<string, JobState>();
  const look = async (from: number) => {
    const count = Math.min(ITEMS_A_LOOK, batch.total - from);
    const ids = Array.from({ length: count }, (_, place) => itemJobId(batch, from + place));
    for (const [jobId, state] of await jobs.statesOf(batch.tenantId, ids)) states.set(jobId, state);
  };
  for (let from = 0; from < batch.total; from += ITEMS_A_LOOK) await share(() => look(from));
  return states;
}

/** The job of an item of a batch: always the same, so that an item picked up again makes no second job. */
export function itemJobId({ _id }: Pick<FileBatchRecord, "_id">, place: number): string {
  const time = _id.slice(-26, -16); // the batch's
  return `job_${time}${hashDigits(`${_id}:${place}`)}`;
}

/** The jobs of a batch's items, in their order. */
export const itemJobIds = (batch: Pick<FileBatchRecord, "_id" | "total">): string[] =>
  Array.from({ length: batch.total }, (_, place) => itemJobId(batch, place));
