import { type Spent, sumSpent } from "../definitions/runs.ts";
import type { Course, Walk } from "./course.ts";
import { type Attempt, noteOpen } from "./course.ts";
import { type Frame, openFrame } from "./frame.ts";
import { TurnOver } from "./pauses.ts";
import type { ItemToWalk, Nested } from "./steps/step.ts";

/** Least time between two reports of how far a list is, in ms. */
const REPORT_EVERY_MS = 500;

/** Stops what is under way beside a step that has failed. */
class Stopped extends Error {
  override name = "Stopped";
}

/** What steps that hold other steps work with. */
export function makeNested(on: Walk, course: Course, attempt: Attempt): Nested {
  const { context, turn } = on;
  const { frame, line } = course;
  const { path, planned, id } = attempt;
  const scope = scopeOfItems(attempt);
  const deadlineAt = Math.min(course.deadlineAt, attempt.deadlineAt);
  const items = makeItemFrames(on, course, attempt);
  let reportedAt = Number.NEGATIVE_INFINITY;
  return {
    scope,
    width: course.width,
    get opened() {
      return frame.open.get(path);
    },
    note: (fields) => noteOpen(on, frame, attempt, fields),
    async walkBranch(name, signal) {
      const own = { previous: line.previous, last: undefined };
      await on.walkSteps(
        on,
        { ...course, line: own, signal, deadlineAt, isNested: true },
        planned.branches[name] ?? [],
      );
      return { output: toOutput(own) };
    },
    readItems: items.read,
    async walkItem({ index, values, signal, width }: ItemToWalk) {
      const own = items.open(index, values);
      const flow = { previous: line.previous, last: undefined };
      const inner = { ...course, frame: own, line: flow, signal, deadlineAt, width, isNested: true };
      await on.walkSteps(on, inner, planned.branches.do ?? []);
      items.close(index);
      return { output: toOutput(flow), spent: spentIn(own) };
    },
    spentOf(index) {
      const own = items.get(index);
      return own ? spentIn(own) : sumSpent([]);
    },
    async all(tasks, atOnce) {
      turn.leave(); // others work for it
      try {
        await runAll(on, course.signal, { tasks, atOnce });
      } finally {
        turn.enter();
      }
    },
    async report({ done, total }) {
      on.progress = { stage: id, done, total };
      const now = performance.now();
      if (done < total && now - reportedAt < REPORT_EVERY_MS) return;
      reportedAt = now;
      await context.step({ event: "items", id, path, done, total }, on.progress);
    },
    async share(write) {
      return context.share(write).catch((error: unknown) => {
        if (context.signal.aborted) return write();
        throw error;
      });
    },
  };
}

const scopeOfItems = ({ path }: Attempt) => `${path}/do`;

/** The frames of a list's items, each while it is under way. */
function makeItemFrames({ deps, run, texts }: Walk, { frame: outer }: Course, attempt: Attempt) {
  type Known = Pick<Parameters<typeof openFrame>[0], "results" | "open">;
  const known = new Map<number, Known>();
  const frames = new Map<number, Frame>();
  const scopeOf = (index: number) => `${scopeOfItems(attempt)}[${index}]`;
  return {
    /** Reads what is recorded of these items. */
    async read(indexes: readonly number[]): Promise<void> {
      if (indexes.length === 0) return;
      const { tenantId, _id: runId } = run;
      const scopes = indexes.map(scopeOf);
      const [results, open] = await Promise.all([
        deps.store.workflowRuns.stepsOfItems(tenantId, runId, scopes),
        deps.store.workflowRuns.openSteps(tenantId, runId, scopes),
      ]);
      for (const index of indexes) {
        const isOwn = (record: { scope: string }) => record.scope === scopeOf(index);
        known.set(index, { results: results.filter(isOwn), open: open.filter(isOwn) });
      }
    },
    open(index: number, values: ItemToWalk["values"]): Frame {
      const { results, open } = known.get(index) ?? { results: [], open: [] };
      known.delete(index);
      const place = { scope: scopeOf(index), from: `${attempt.planned.path}/do/`, to: `${scopeOf(index)}/` };
      const frame = openFrame({ ...place, texts, outer, values, results, open });
      frames.set(index, frame);
      return frame;
    },
    get: (index: number) => frames.get(index),
    close: (index: number) => void frames.delete(index),
  };
}

const toOutput = ({ last }: { last: string | undefined }) => last ?? "null";

const spentIn = (frame: Frame): Spent => sumSpent([...frame.results.values()].flatMap(({ spent }) => spent ?? []));

type Tasks = { tasks: Iterable<(signal: AbortSignal) => Promise<void>>; atOnce: number };

/** Runs tasks, so many at once. One that waits keeps its place, and the first that fails stops the others. */
async function runAll({ turn }: Walk, signal: AbortSignal, { tasks, atOnce }: Tasks): Promise<void> {
  const inner = new AbortController();
  const both = AbortSignal.any([signal, inner.signal]);
  const running = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let waiting = 0;
  const start = (task: (signal: AbortSignal) => Promise<void>) => {
    turn.enter();
    const one: Promise<void> = task(both)
      .catch((error: unknown) => {
        if (error instanceof TurnOver) {
          waiting += 1;
          return;
        }
        failures.push(error);
        inner.abort(new Stopped("Another step has failed."));
      })
      .finally(() => {
        running.delete(one);
        turn.leave();
      });
    running.add(one);
  };
  const isDone = () => failures.length > 0 || turn.isOver() || signal.aborted;
  for (const task of tasks) {
    while (running.size > 0 && running.size + waiting >= atOnce && !isDone()) await Promise.race(running);
    if (isDone()) break;
    start(task);
  }
  await Promise.all(running);
  signal.throwIfAborted();
  if (failures.length > 0) throw failures[0];
  if (waiting > 0 || turn.isOver()) throw new TurnOver();
}
