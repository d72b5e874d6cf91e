import { verifyAuditLog } from "../../../src/agents/audit.ts";
import { type AgentRunRecord, agentRunCollection } from "../../../src/store/agent-run-store.ts";
import { type AuditEntry, auditCollection } from "../../../src/store/audit-store.ts";
import type { JobOf } from "./check-jobs.ts";
import { about, type Check, type Evidence } from "./evidence.ts";
import type { Accepted } from "./load.ts";

/** Answers of the model in one run, by its work: those that ask for tools, and the last. */
const answersOf: Partial<Record<Accepted["work"], number>> = { agent: 3, purchase: 2 };

/** The promises about the trails of agents' runs. */
export async function checkAudits({ db, load }: Evidence, jobOf: JobOf): Promise<Check> {
  const runs = await db.collection<AgentRunRecord>(agentRunCollection.name).find().toArray();
  const entries = await db.collection<AuditEntry>(auditCollection.name).find().sort({ runId: 1, seq: 1 }).toArray();
  const byRun = Map.groupBy(entries, ({ runId }) => runId);
  const runOf = new Map(runs.map((run) => [run.jobId, run]));
  const auditLogs: string[] = [];
  for (const run of runs) {
    const { verified, breach } = verifyAuditLog(run, byRun.get(run._id) ?? []);
    if (!verified) auditLogs.push(`the trail of ${run._id} is broken at ${breach?.seq}: ${breach?.problem}`);
  }
  for (const accepted of load.accepted.filter(({ work }) => work in answersOf)) {
    const job = jobOf(accepted);
    const run = job && runOf.get(job._id);
    if (!run) {
      auditLogs.push(`${about(accepted)} has no run`);
      continue;
    }
    const answers = (byRun.get(run._id) ?? []).filter(({ content }) => "spent" in content && "model" in content);
    const expected = answersOf[accepted.work];
    if (job.status === "completed" && answers.length !== expected) {
      auditLogs.push(`${about(accepted)} paid ${answers.length} answers of the model for ${expected}`);
    }
  }
  return {
    promise: "audit chains verify",
    found: `${runs.length} runs, ${entries.length} entries`,
    breaches: auditLogs,
  };
}
