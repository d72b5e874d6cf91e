import { ensureServices } from "../../../src/embedded/ensure.ts";
import { makeLogger } from "../../../src/observe/logger.ts";
import { completionsCollection } from "../../../src/store/completion-store.ts";
import { connectStore } from "../../../src/store/connect.ts";
import { versionCollection } from "../../../src/store/data-version.ts";
import { migrations } from "../../../src/store/migrations.ts";
import { usageCollection } from "../../../src/store/usage-store.ts";
import type { FakeBatches } from "../../support/fake-provider/batch-server.ts";
import type { FakeProvider } from "../../support/fake-provider/server.ts";
import { type Call, listAll, makeCalls, until } from "./client.ts";
import { chat, type Filled, ownProviderKey, question } from "./fill.ts";

export type Finding = { promise: string; found: string; isKept: boolean };

type Opened = {
  url: string;
  dataDir: string;
  ownerKey: string;
  chats: FakeProvider;
  batches: FakeBatches;
  filled: Filled;
};

/** What must be true of an earlier release's data once the present code has opened them. */
export async function checkUpgrade(opened: Opened): Promise<Finding[]> {
  const { url, ownerKey, filled, chats, batches } = opened;
  const [owner, admin] = [makeCalls(url, ownerKey), makeCalls(url, filled.adminKey)];
  const { finished } = filled;
  const findings: Finding[] = [];
  const expect = (promise: string, found: unknown, isKept: boolean) =>
    findings.push({ promise, found: String(found), isKept });

  const keys = await listAll(owner, "/keys");
  expect("keys open the API, and are listed", `${keys.length} keys`, keys.length === 3);
  const documents = await listAll(owner, "/rag/documents?status=indexed");
  const isThere = finished.documents.every((id) => documents.some(({ documentId }) => documentId === id));
  expect("indexed documents are listed", `${documents.length} documents`, isThere);
  const { results } = (await owner("/rag/query", { query: question, topK: 1 })) as { results: { content: string }[] };
  expect("queries find them", results[0]?.content, results[0]?.content.includes("bled at its valve") === true);
  const run = await owner(`/agents/${filled.agentId}/runs/${finished.runId}`);
  expect("a finished agent run is read back", run.status, run.status === "completed");
  const execution = await owner(`/composite/executions/${finished.executionId}`);
  expect("a finished composite run is read back", execution.status, execution.status === "completed");
  const workflows = (await listAll(owner, "/workflows")).map(({ name, stepCount }) => `${name}: ${stepCount} steps`);
  expect(
    "workflows show their steps",
    workflows,
    workflows.includes("W: 3 steps") && workflows.includes("Plain: 1 steps"),
  );

  const decisions = ["approved", "rejected"] as const;
  for (const [at, decision] of decisions.entries()) {
    const decided = await admin(`/workflows/approvals/${filled.approvals[at]}/decide`, { decision });
    expect(`a waiting approval can be ${decision}`, decided.status, decided.status === decision);
  }
  for (const batch of batches.batches) batch.endsAt = Date.now();
  await untilEnded(owner, admin);
  const jobs = await listAll(owner, "/jobs");
  const ended = Map.groupBy(jobs, ({ status }) => String(status));
  const states = [...ended].map(([status, list]) => `${list.length} ${status}`).join(", ");
  expect("queued and interrupted work ends well", states, !jobs.some(({ status }) => status !== "completed"));
  const runs = (await listAll(owner, `/workflows/${filled.workflowId}/runs`)).map(({ status }) => status);
  expect("runs follow the decisions", runs, runs.toSorted().join() === "completed,completed,rejected");
  const answers = await Promise.all(filled.batchJobs.map((id) => owner(`/jobs/${id}`)));
  const isAnswered = answers.every(({ status }) => status === "completed");
  const times = [...batches.submitted.values()];
  expect("a batch in flight is answered, submitted once", times, isAnswered && times.every((count) => count === 1));

  const agentRuns = await listAll(owner, `/agents/${filled.agentId}/runs`);
  const chains = await Promise.all(
    agentRuns.map(async ({ runId }) => (await owner(`/agents/${filled.agentId}/runs/${runId}`)).integrity as Integrity),
  );
  const entries = chains.reduce((sum, chain) => sum + chain.entries, 0);
  expect(
    "audit chains verify",
    `${chains.length} chains, ${entries} entries`,
    chains.every(({ verified }) => verified),
  );
  await chat(owner, "After the upgrade");
  const used = chats.requests.at(-1)?.headers.authorization;
  expect("the tenant's own provider key is used", "the key", used === `Bearer ${ownProviderKey}`);
  findings.push(...(await checkStore(opened, owner)));
  return findings;
}

type Integrity = { verified: boolean; entries: number };

/** Waits until no job is open. The run that was interrupted before its approval asks for one now. */
async function untilEnded(owner: Call, admin: Call): Promise<void> {
  await until(
    "end of all jobs",
    async () => {
      const { data } = (await admin("/workflows/approvals")) as { data: { approvalId: string }[] };
      for (const { approvalId } of data)
        await admin(`/workflows/approvals/${approvalId}/decide`, { decision: "approved" });
      const open = (await listAll(owner, "/jobs")).filter(
        ({ status }) => status !== "completed" && status !== "failed" && status !== "cancelled",
      );
      return open.length === 0;
    },
    120_000,
  );
}

async function checkStore({ dataDir, filled }: Opened, owner: Call): Promise<Finding[]> {
  const logger = makeLogger({ level: "silent", name: "upgrade" });
  const services = await ensureServices({ dataDir, mongo: true, redis: false, logger });
  const { db, close } = await connectStore({ url: services.mongoUrl ?? "", db: "switchyard", timeoutMs: 10_000 });
  try {
    const sumOf = async (collection: string, countOf: (one: Record<string, unknown>) => number) => {
      const all = await db.collection(collection).find().toArray();
      const cost = all.reduce((sum, one) => sum + Number(one.costNanoUsd), 0);
      return { requests: all.reduce((sum, one) => sum + countOf(one), 0), cost };
    };
    let [usage, ledger] = [
      { requests: -1, cost: -1 },
      { requests: 0, cost: 0 },
    ];
    const look = async () => {
      usage = await sumOf(usageCollection.name, ({ requests }) => Number(requests));
      ledger = await sumOf(completionsCollection.name, () => 1);
      return usage.requests === ledger.requests && usage.cost === ledger.cost;
    };
    const addsUp = await until("equal sums", look, 10_000).then(
      () => true,
      () => false,
    );
    const { total } = (await owner("/usage")) as { total: { requests: number; costUsd: number } };
    const isKept = addsUp && total.requests >= filled.requests && total.costUsd >= filled.costUsd;
    const version = (await db.collection(versionCollection.name).findOne({}))?.version;
    return [
      {
        promise: "usage adds up, and nothing of it is lost",
        found: `${filled.requests} calls before, ${usage.requests} counted and ${ledger.requests} recorded now, ${usage.cost} and ${ledger.cost} nano-USD`,
        isKept,
      },
      {
        promise: "the data have the present version",
        found: String(version),
        isKept: version === migrations.length + 1,
      },
    ];
  } finally {
    await close();
    await services.close();
  }
}
