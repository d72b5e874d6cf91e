import { z } from "zod";
import { sumSpent } from "../../definitions/runs.ts";
import { defined } from "../../lib/defined.ts";
import { AppError, invalidRequest } from "../../lib/errors.ts";
import { idSchema } from "../../lib/ids.ts";
import type { JobRecord } from "../../store/job-record.ts";
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
  stub: ({ workflowId }, { input }) => ({ output: null, call: { workflow: workflowId, input } }),
  async run(work): Promise<StepResult> {
    const { step, run, deps, fill, child } = work;
    const { workflowId } = step;
    const ended = await child({
      kind: "workflow",
      async accept(given) {
        const { input } = await fill();
        return deps.accept({ ...given, workflowId, body: input === undefined ? {} : { input } });
      },
      spentOf: (job) => spentOf(work, job),
    });
    if ("failure" in ended) return { output: null, ...defined(ended) };
    const { status, output } = resultSchema.parse(ended.result);
    const runId = z.object({ runId: z.string() }).parse(ended.result).runId;
    const spent = await spentOfRun(deps, run.tenantId, runId);
    if (status === "completed") return { output: output ?? null, spent };
    if (step.onError === undefined) return { output: null, spent, ends: status };
    const failure = new AppError("wrong_state", `The run of the workflow ended as ${status}.`, {
      details: { status, runId },
    });
    return { output: null, spent, failure };
  },
});

const spentOf = ({ deps, run }: StepWork<WorkflowStep>, job: JobRecord) =>
  spentOfRun(deps, run.tenantId, job.subject.runId ?? "");

async function spentOfRun({ store }: StepWork<WorkflowStep>["deps"], tenantId: string, runId: string) {
  return sumSpent((await store.workflowRuns.steps(tenantId, runId)).flatMap(({ spent }) => spent ?? []));
}
