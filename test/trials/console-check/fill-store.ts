import type { Db } from "mongodb";
import { ulid } from "ulidx";
import { ensureServices } from "../../../src/embedded/ensure.ts";
import { type IdKind, idPrefixes } from "../../../src/lib/ids.ts";
import { makeLogger } from "../../../src/observe/logger.ts";
import { connectStore } from "../../../src/store/connect.ts";
import { usageCounters } from "../../../src/store/usage-store.ts";
import { type ApiClient, waitForApproval, waitForJob } from "./api-client.ts";
import type { Desk } from "./desk.ts";

/** What the tenant has then. */
export const sizes = { runs: 10_000, documents: 10_000, approvals: 10_000, calls: 200_000 } as const;
/** Records of one write. */
const BATCH = 1_000;
const DAY_MS = 86_400_000;
const DAYS = 30;

type Stored = Record<string, unknown> & { _id: string };

/**
 * Gives the desk's tenant as many runs, documents and calls as above, over thirty days: one of each kind is made by the API,
 * and its stored records are written again under other ids and times.
 */
export async function fillStore(desk: Desk): Promise<Made> {
  const made = await makeOneOfEach(desk.call);
  await withStore(desk, async (db) => {
    /** Writes `count` copies of the records of a collection, in turn. */
    const copy = async (name: string, count: number, change: (one: Stored, n: number) => Stored) => {
      const collection = db.collection<Stored>(name);
      const samples = await collection.find({}).toArray();
      if (samples.length === 0) throw new Error(`There is nothing to copy in ${name}`);
      for (let from = 0; from < count; from += BATCH) {
        const copies = Array.from({ length: Math.min(BATCH, count - from) }, (_, n) => {
          const sample = samples[(from + n) % samples.length];
          return change({ ...(sample as Stored) }, from + n);
        });
        await collection.insertMany(copies, { ordered: false });
      }
    };
    await copy("documents", sizes.documents, (one, n) => renew(one, { kind: "document", n, of: sizes.documents }));
    await copy("completions", sizes.calls, (one, n) => renew(one, { kind: "log", n, of: sizes.calls }));
    await copy("agentRuns", sizes.runs / 2, (one, n) => renew(one, { kind: "run", n, of: sizes.runs / 2 }));
    await copy("workflowRuns", sizes.runs / 2, (one, n) => renew(one, { kind: "workflowRun", n, of: sizes.runs / 2 }));
    await copy("approvals", sizes.approvals, (one, n) => renew(one, { kind: "approval", n, of: sizes.approvals }));
    await copy("jobs", sizes.runs + sizes.documents, (one, n) =>
      renew(one, { kind: "job", n, of: sizes.runs + sizes.documents }),
    );
  });
  return made;
}

/** Counts what the tenant has used until now on each of the thirty days before too, each time a part of it: for pictures. */
export function fillUsage(desk: Desk): Promise<void> {
  return withStore(desk, async (db) => {
    const usage = db.collection<Stored>("usage");
    const counters = await usage.find({}).toArray();
    const days = Array.from({ length: DAYS - 1 }, (_, n) => new Date(Date.now() - (n + 1) * DAY_MS));
    const copies = days.flatMap((date, n) =>
      counters.map((one, at) => {
        const day = date.toISOString().slice(0, 10);
        const part = 0.3 + 0.6 * Math.abs(Math.sin(n * 1.7 + at));
        const numbers = usageCounters.map((name) => [name, Math.ceil(Number(one[name]) * part)]);
        return { ...one, ...Object.fromEntries(numbers), day, _id: one._id.replace(String(one.day), day) };
      }),
    );
    await usage.insertMany(copies);
  });
}

/** Works on the stored records of a desk. */
async function withStore({ dataDir }: Desk, work: (db: Db) => Promise<void>): Promise<void> {
  const logger = makeLogger({ level: "error", name: "console-check" });
  const services = await ensureServices({ dataDir, mongo: true, redis: false, logger });
  try {
    const { db, close } = await connectStore({ url: services.mongoUrl ?? "", db: "switchyard", timeoutMs: 60_000 });
    try {
      await work(db);
    } finally {
      await close();
    }
  } finally {
    await services.close();
  }
}

/** The same record with an id and times of the past thirty days. */
function renew(one: Stored, { kind, n, of }: { kind: IdKind; n: number; of: number }): Stored {
  const at = new Date(Date.now() - DAYS * DAY_MS + (n / of) * DAYS * DAY_MS);
  const times = Object.fromEntries(
    ["createdAt", "updatedAt", "startedAt", "finishedAt"].filter((name) => name in one).map((name) => [name, at]),
  );
  const title = typeof one.title === "string" ? { title: `${one.title} ${n}` } : {};
  const { urlHash: _urlHash, ...rest } = one;
  return { ...rest, ...times, ...title, _id: `${idPrefixes[kind]}_${ulid(at.getTime())}` };
}

type Made = { agentId: string; workflowId: string; documentId: string };

async function makeOneOfEach(call: ApiClient): Promise<Made> {
  const wait = { prefer: "wait=100" };
  const model = "desk/large";
  const { documentId } = await call("POST", "/rag/ingest", {
    body: { content: "# Pump\n\nIt is bled.", title: "Pump" },
    headers: wait,
  });
  await call("POST", "/ai/chat", { body: { model, messages: [{ role: "user", content: "Hello" }] } });
  const { agentId } = await call("POST", "/agents", { body: { name: "Desk", model, systemPrompt: "Answer." } });
  await call("POST", `/agents/${agentId}/run`, { body: { input: "Hello" }, headers: wait });
  const steps = [{ id: "approve", type: "human_approval", assigneeRole: "admin", message: "Well?" }];
  const { workflowId } = await call("POST", "/workflows", { body: { name: "Complaint", steps } });
  const { jobId } = await call("POST", `/workflows/${workflowId}/execute`, { body: {} });
  const approvalId = await waitForApproval(call);
  await call("POST", `/workflows/approvals/${approvalId}/decide`, { body: { decision: "approved" } });
  await waitForJob(call, String(jobId));
  return { agentId: String(agentId), workflowId: String(workflowId), documentId: String(documentId) };
}
