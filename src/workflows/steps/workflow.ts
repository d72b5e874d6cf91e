import { z } from "zod";
import { defined } from "../../lib/defined.ts";
import { AppError, invalidRequest } from "../../lib/errors.ts";
import { idSchema } from "../../lib/ids.ts";
import { spentOfRun } from "../run-spent.ts";
import { commonFields, type StepResult, type StepWork, stepKind } from "./step.ts";

const schema = z.strictObject({
  type: z.literal("workflow"),
  ...commonFields,
  workflowId: idSchema("workflow"),
  input: z.unknown().optional().describe("A text that is one expression keeps the type of its value"),
});
type WorkflowStep = z.output<typeof schema>;

const resultSchema = z.object({ status: z.enum(["completed", "rejected", "expired"]), output: z.unknown().optional() });

/** Runs another workflow, as a job of its own. A run that is rejected, or expires, ends this one likewise. */
export const workflow = stepKind<WorkflowStep>({
  schema,
  summary: "workflowId, input?",
  fields: ({ input }) => (input === undefined ? [] : [{ at: "input", value: input, kind: "value" }]),
  async check({ workflowId }, { deps, tenantId, field }) {
    if (await deps.store.workflows.get(tenantId, workflowId)) return;
    throw invalidRequest(`${field}.workflowId`, "There is no such workflow.");
  },
  attempts: 1, // its steps have attempts of their own
  stub: ({ step: { workflowId } }, { input }) => ({ output: null, call: { workflow: workflowId, input } }),
  async run(work): Promise<StepResult> {
    const { step, deps, fill, child } = work;
    const { workflowId } = step;
    const ended = await child({
      kind: "workflow",
      async accept(given) {
        const { input } = await fill();
        return deps.accept({ ...given, workflowId, body: input === undefined ? {} : { input } });
      },
      spentOf: (job) => spentOf(work, job.subject.runId ?? "", false),
    });
    if ("failure" in ended) return { output: null, ...defined(ended) };
    const { status, output } = resultSchema.parse(ended.result);
    const runId = z.object({ runId: z.string() }).parse(ended.result).runId;
    const spent = await spentOf(work, runId, status === "completed");
    if (status === "completed") return { output: output ?? null, spent };
    if (step.onError === undefined) return { output: null, spent, ends: status };
    const failure = new AppError("wrong_state", `The run of the workflow ended as ${status}.`, {
      details: { status, runId },
    });
    return { output: null, spent, failure };
  },
});

async function spentOf({ deps, run }: StepWork<WorkflowStep>, runId: string, isWhole: boolean) {
  const { tenantId } = run;
  const steps = await deps.store.workflowRuns.steps(tenantId, runId);
  return spentOfRun(deps.store, { tenantId, _id: runId }, { steps, hasItems: !isWhole });
}
