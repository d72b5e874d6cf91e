import { z } from "zod";
import { sumSpent } from "../../definitions/runs.ts";
import { AppError, type ErrorView, invalidRequest } from "../../lib/errors.ts";
import { Overtaken } from "../../store/store-errors.ts";
import type { EndedItem, WorkflowItemRecord } from "../../store/workflow-step-store.ts";
import { schemasOfItem } from "../given-inputs.ts";
import { StepFailed } from "../pauses.ts";
import { toJsonValue } from "../scope-texts.ts";
import { type CommonFields, commonFields, type StepKind, type StepResult, type StepWork } from "./step.ts";

/** Items of one list, and those that are under way at once; the default of these. */
const MAX_ITEMS = 10_000;
const MAX_CONCURRENCY = 50;
const DEFAULT_CONCURRENCY = 10;
/** Bytes that the store keeps for the items of one list at most. */
const MAX_BYTES = 256 << 20;
/** Names that the expression language, or every step, has already. */
const taken = "input steps previous run true false null in as google".split(" ");

/** Steps of type `S` for each item of a list. */
export type ForEach<S> = Omit<CommonFields, "onError"> & {
  type: "for_each";
  items: string;
  as?: string | undefined;
  concurrency?: number | undefined;
  onError?: "stop" | "continue" | CommonFields["onError"];
  do: S[];
};

/** Walks through a list of steps for each item of a list; `nested` is the schema of the list of steps. */
export function makeForEach<S>(nested: z.ZodType<S[]>): StepKind<ForEach<S>> {
  const schema = z.strictObject({
    type: z.literal("for_each"),
    ...commonFields,
    items: z.string().min(1).max(10_000).describe(`An expression whose value is a list of ${MAX_ITEMS} items at most`),
    as: z
      .string()
      .regex(/^[a-z][a-z0-9_]{0,63}$/, "must be 1 to 64 of a to z, 0 to 9 and _, and begin with a letter")
      .refine((name) => !taken.includes(name), "is a name that expressions have already")
      .optional()
      .describe("What expressions call the item; default item. Its place is `<name>_index`"),
    concurrency: z.number().int().min(1).max(MAX_CONCURRENCY).optional().describe("Items at once; default 10"),
    onError: z
      .union([z.enum(["stop", "continue"]), commonFields.onError.unwrap()])
      .optional()
      .describe("`continue` goes on after an item that failed; default `stop`. Others as of every step"),
    do: nested.refine((list) => list.length > 0, "holds no step"),
  });
  return {
    schema,
    summary: "items (an expression), as?, concurrency?, onError? (also stop or continue), do (steps)",
    fields: ({ items }) => [{ at: "items", value: items, kind: "expression" }],
    nests: ["do"],
    names: ({ as = "item" }) => [as, `${as}_index`],
    schemas: ({ items, as = "item" }, schemaOf) => schemasOfItem(as, schemaOf(items)),
    attempts: 1, // the steps within have attempts of their own
    run: (work) => walkItems(work),
  };
}

async function walkItems<S>(work: StepWork<ForEach<S>>): Promise<StepResult> {
  const { deps, run, step, nested } = work;
  const { tenantId, _id: runId } = run;
  const { scope } = nested;
  const list = await openList(work);
  const from = nested.opened?.floor ?? 0;
  const state = makeItemStates(await deps.store.workflowRuns.endedItems(tenantId, runId, { scope, from }), {
    from,
    total: list.length,
    before: nested.opened?.items?.failed ?? 0,
  });
  const atOnce = Math.max(1, Math.min(step.concurrency ?? DEFAULT_CONCURRENCY, nested.width));
  const missing = state.missing();
  const width = Math.floor(nested.width / atOnce);
  // Items begin in order: one that has begun, and not ended, is among the first of those that are missing.
  await nested.readItems(missing.slice(0, atOnce));
  const note = () =>
    nested.note({ status: "running", list: JSON.stringify(list), floor: state.floor(), items: state.counts() });
  try {
    await nested.all(
      missing.map((index) => (signal: AbortSignal) => walkOne(work, { index, list, state, signal, width })),
      atOnce,
    );
  } finally {
    if (state.hasChanged()) await note();
  }
  return closeList(work, list.length);
}

/** What a list goes over: evaluated once. */
async function openList<S>({ place, fill, nested }: StepWork<ForEach<S>>): Promise<unknown[]> {
  const { opened } = nested;
  if (opened?.list !== undefined) return JSON.parse(opened.list);
  const { items } = await fill();
  const field = `${place.field}.items`;
  if (!Array.isArray(items)) throw invalidRequest(field, "The expression's value is no list.");
  if (items.length > MAX_ITEMS)
    throw invalidRequest(field, `The list has ${items.length} items; ${MAX_ITEMS} is the most.`);
  const counts = { done: 0, total: items.length, failed: 0 };
  await nested.note({ status: "running", list: JSON.stringify(items), floor: 0, items: counts });
  return items;
}

type ItemStates = ReturnType<typeof makeItemStates>;

/** Which items of a list have ended. `from`: all below it have, `before` of them by failing. */
function makeItemStates(
  ended: readonly EndedItem[],
  { from, total, before }: { from: number; total: number; before: number },
) {
  const known = new Map(ended.map(({ seq, status }) => [seq, status]));
  const atFirst = known.size;
  let bytes = ended.reduce((sum, one) => sum + (one.bytes ?? 0), 0);
  let floor = from;
  let failedBelow = from === 0 ? 0 : before;
  const rise = () => {
    for (let status = known.get(floor); status !== undefined; status = known.get(floor)) {
      if (status === "failed") failedBelow += 1;
      known.delete(floor);
      floor += 1;
    }
  };
  rise();
  const counts = () => {
    const failedAbove = [...known.values()].filter((status) => status === "failed").length;
    return { done: floor + known.size, total, failed: failedBelow + failedAbove };
  };
  const doneAtFirst = floor + known.size;
  return {
    missing: () => Array.from({ length: total - floor }, (_, at) => floor + at).filter((index) => !known.has(index)),
    ended({ seq, status, bytes: more = 0 }: EndedItem) {
      known.set(seq, status);
      bytes += more;
      rise();
    },
    floor: () => floor,
    bytes: () => bytes,
    counts,
    hasChanged: () => floor + known.size !== doneAtFirst || atFirst > 0,
  };
}

type OneItem = {
  index: number;
  list: readonly unknown[];
  state: ItemStates;
  signal: AbortSignal;
  width: number;
};

async function walkOne<S>(work: StepWork<ForEach<S>>, { index, list, state, signal, width }: OneItem): Promise<void> {
  const { deps, run, step, place, nested } = work;
  const { as = "item" } = step;
  if (state.bytes() > MAX_BYTES)
    throw new AppError("quota_exceeded", `The results of the items have more than ${MAX_BYTES} bytes together.`);
  const values = {
    [as]: toJsonValue(JSON.stringify(list[index] ?? null)),
    [`${as}_index`]: toJsonValue(String(index)),
  };
  const startedAt = new Date();
  let outcome: { output: string } | { error: ErrorView };
  let spent = sumSpent([]);
  try {
    const walked = await nested.walkItem({ index, values, signal, width });
    outcome = { output: walked.output };
    spent = sumSpent([walked.spent]);
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    const mayGoOn = step.onError === "continue" && error.error.code !== "budget_exhausted";
    if (!mayGoOn) throw error; // the item has no result: it is what a run that is started again begins with
    outcome = { error: error.error };
    spent = sumSpent([nested.spentOf(index)]);
  }
  const item = {
    _id: `${run._id}:${nested.scope}[${index}]`,
    tenantId: run.tenantId,
    runId: run._id,
    scope: nested.scope,
    seq: index,
    path: `${nested.scope}[${index}]`,
    id: place.id,
    type: "for_each",
    attempts: 1,
    startedAt,
    finishedAt: new Date(),
    status: "error" in outcome ? ("failed" as const) : ("completed" as const),
    ...outcome,
    spent,
  };
  const kept = await nested.share(() => deps.store.workflowRuns.addItem(item));
  if (!kept) throw new Overtaken("This run");
  state.ended(kept);
  await nested.report(state.counts());
}

/** The result of a list whose items have all ended. */
async function closeList<S>({ deps, run, nested }: StepWork<ForEach<S>>, total: number): Promise<StepResult> {
  const { tenantId, _id: runId } = run;
  const { scope } = nested;
  const ended = await deps.store.workflowRuns.endedItems(tenantId, runId, { scope, from: 0 });
  if (ended.length !== total) throw new Overtaken("This run");
  const output: unknown = JSON.parse(
    await joinOutputs(ended, deps.store.workflowRuns.items(tenantId, runId, { scope, from: 0 })),
  );
  const failed = ended.filter(({ status }) => status === "failed").length;
  const spent = sumSpent(ended.flatMap((item) => item.spent ?? []));
  return { output, spent, items: { done: total, total, failed } };
}

/** Longest list of outputs, in characters of JSON: as long as expressions may read twice over, with room for the run's others. */
const MAX_LIST = 4_000_000;
/** About how many bytes of an item's record are not its output. */
const BYTES_BESIDE = 400;

/**
 * The outputs of a list's items in order, as JSON. Where they are too long together, the longest are left on their items: in the
 * place of each stands `{ ref, characters }`, and the list of the run's items has it. An item that failed is `{ error }`.
 */
async function joinOutputs(ended: readonly EndedItem[], items: AsyncIterable<WorkflowItemRecord>): Promise<string> {
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
