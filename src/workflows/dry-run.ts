import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import type { RunRequest } from "../definitions/runs.ts";
import { errorViewSchema } from "../jobs/job-view.ts";
import type { WorkContext } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import { AppError, type ErrorView } from "../lib/errors.ts";
import { withBytes } from "../store/run-use.ts";
import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { WorkflowItemRecord, WorkflowStepRecord } from "../store/workflow-step-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { openWalk, walkAll } from "./execute.ts";
import { openFrame, toRunTexts } from "./frame.ts";
import { TurnOver } from "./pauses.ts";
import { executeBodySchema, type WorkflowBody, workflowBodySchema } from "./schemas.ts";
import type { StepPlace, StepResult, StepWork } from "./steps/step.ts";
import { kindOf, type Step, stepTypes } from "./steps.ts";

/** How long a dry run takes at most, in ms; results that it keeps at most, and their bytes. */
const MAX_MS = 5_000;
const MAX_RESULTS = 5_000;
const MAX_BYTES = 16_000_000;
/** Calls that its answer lists at most, and the characters of these as JSON. */
const MAX_CALLS = 1_000;
const MAX_CALL_CHARACTERS = 1_000_000;
/** Workflows inside of each other; as of runs. */
const MAX_DEPTH = 5;

/** What a dry run says. */
export const dryRunSchema = z.object({
  dryRun: z.literal(true),
  status: z.enum(["completed", "failed", "rejected", "expired"]),
  output: z.unknown().optional(),
  error: errorViewSchema.optional(),
  calls: z
    .array(z.looseObject({ path: z.string(), id: z.string(), type: z.enum(stepTypes) }))
    .describe(
      "What each step would call, as far as the list is not too long; of a workflow within, `path` begins with its step's",
    ),
  callCount: z.number().int().describe("All calls, those included that `calls` leaves out"),
});
type DryRun = z.input<typeof dryRunSchema>;

/** What to run so, and for whom: a workflow that is kept, or a draft of one. */
export type DryRequest = { caller: Caller; of: { workflowId: string } | { draft: WorkflowBody } } & {
  input: unknown;
  signal: AbortSignal;
};

/** The body of a dry run of a draft. */
export const draftRunSchema = z.object({
  workflow: workflowBodySchema.describe("The draft, as the body of `POST /workflows`"),
  input: executeBodySchema.shape.input,
});

/** A run as it would be accepted, of a workflow that is kept, or of a draft, which is checked. */
type ToRun = (
  deps: WorkflowsDeps,
  request: RunRequest<{ input?: unknown }> & DryRequest["of"],
) => Promise<WorkflowRunRecord>;

/**
 * Walks through a run that is not kept, with stubs in the place of what calls models, addresses, people and other jobs.
 * @throws AppError as the acceptance of a run; `timeout` and `quota_exceeded` for a run that is too long; the signal's reason.
 */
export async function dryRun(
  deps: WorkflowsDeps,
  accept: ToRun,
  { caller, of, input, signal: given }: DryRequest,
): Promise<DryRun> {
  const toRun = (one: DryRequest["of"], value: unknown) =>
    accept(deps, { caller, ...one, body: defined({ input: value }), isInteractive: true });
  const calls = makeCalls();
  const room = { results: MAX_RESULTS, bytes: MAX_BYTES };
  const late = AbortSignal.timeout(MAX_MS);
  const signal = AbortSignal.any([given, late]);
  const walkOne = async (run: WorkflowRunRecord, prefix: string, depth: number): Promise<Ended> => {
    const { tenantId, _id: recordId, jobId } = run;
    const texts = toRunTexts(run);
    const root = openFrame({ scope: "", from: "", to: "", texts, results: [], open: [] });
    const dry = async (work: StepWork<Step>): Promise<StepResult> => {
      const { step, place } = work;
      const filled = await work.fill();
      const { call, ...stubbed } = (await kindOf(step).stub?.(work, filled)) ?? { call: {}, output: null };
      calls.add({ ...place, path: `${prefix}${place.path}` }, step, call);
      if (step.type !== "workflow") return stubbed;
      if (depth >= MAX_DEPTH)
        throw new AppError("call_too_deep", `Workflows run inside of each other ${MAX_DEPTH} deep at most.`);
      const inner = await toRun({ workflowId: step.workflowId }, filled.input);
      return toStepResult(await walkOne(inner, `${prefix}${place.path}/`, depth + 1));
    };
    const context = makeContext({ tenantId, jobId, recordId, signal, logger: deps.logger });
    const on = openWalk(
      { ...deps, store: { ...deps.store, workflowRuns: keepHere(deps, room) } },
      { run, texts, root, dry },
      context,
    );
    return walkAll(on);
  };
  try {
    const { status, output, error } = await walkOne(await toRun(of, input), "", 1);
    const value: unknown = output === undefined ? undefined : JSON.parse(output);
    return { dryRun: true, status: statusOf(status), ...defined({ output: value, error }), ...calls.list() };
  } catch (error) {
    given.throwIfAborted();
    if (late.aborted) throw new AppError("timeout", `A dry run takes ${MAX_MS} ms at most.`);
    // Nothing waits in it but expressions of a tenant that evaluates too many.
    if (error instanceof TurnOver) throw new AppError("too_many_concurrent", "Too much is evaluated; try again.");
    throw error;
  }
}

type Ended = { status: string; output?: string | undefined; error?: ErrorView };

const statusOf = (status: string) => dryRunSchema.shape.status.parse(status);

function toStepResult({ status, output, error }: Ended): StepResult {
  if (status === "rejected" || status === "expired") return { output: null, ends: status };
  const value: unknown = output === undefined ? null : JSON.parse(output);
  if (!error) return { output: value };
  const { code, message, details } = error;
  return { output: null, failure: new AppError("wrong_state", message, { details: { ...Object(details), code } }) };
}

/** Collects calls, and counts those that are too many. */
function makeCalls() {
  const calls: DryRun["calls"] = [];
  let [callCount, characters] = [0, 0];
  return {
    add({ path, id }: Pick<StepPlace, "path" | "id">, { type }: Step, call: Record<string, unknown>): void {
      const one = { path, id, type, ...defined(call) };
      callCount += 1;
      characters += JSON.stringify(one).length;
      if (calls.length < MAX_CALLS && characters <= MAX_CALL_CHARACTERS) calls.push(one);
    },
    list: () => ({ calls, callCount }),
  };
}

/** What a worker's shell gives to a run, without a job. */
const makeContext = (
  about: Pick<WorkContext, "tenantId" | "jobId" | "recordId" | "signal" | "logger">,
): WorkContext => ({
  ...about,
  isLastAttempt: true,
  progress: async () => undefined,
  confirm: async () => undefined,
  step: async () => undefined,
  async share(part) {
    await setImmediate(); // others have their turn
    about.signal.throwIfAborted();
    return part();
  },
  inner: (_, run) => run(),
});

/** Results in memory. */
function keepHere(
  { store }: WorkflowsDeps,
  room: { results: number; bytes: number },
): WorkflowsDeps["store"]["workflowRuns"] {
  const items = new Map<string, WorkflowItemRecord[]>();
  const keep = <T extends WorkflowStepRecord>(step: T): T => {
    const kept = withBytes(step);
    room.results -= 1;
    room.bytes -= kept.bytes;
    if (room.results >= 0 && room.bytes >= 0) return kept;
    throw new AppError(
      "quota_exceeded",
      `A dry run ends after ${MAX_RESULTS} steps, or ${MAX_BYTES} bytes of their results.`,
    );
  };
  const itemsOf = (scope: string) => (items.get(scope) ?? []).toSorted((a, b) => a.seq - b.seq);
  return {
    ...store.workflowRuns,
    addStep: async (step) => keep(step),
    async addItem(item) {
      const kept = keep(item);
      const list = items.get(item.scope) ?? [];
      list.push(kept);
      items.set(item.scope, list);
      return kept;
    },
    endedItems: async (_, __, { scope }) => itemsOf(scope),
    async *items(_, __, { scope }) {
      yield* itemsOf(scope);
    },
    stepsOfItems: async () => [],
    openSteps: async () => [],
    noteOpen: async () => undefined,
    childrenWithin: async () => [],
  };
}
