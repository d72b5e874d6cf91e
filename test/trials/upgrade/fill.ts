import type { FakeBatches } from "../../support/fake-provider/batch-server.ts";
import type { FakeProvider } from "../../support/fake-provider/server.ts";
import { type Call, later, makeCalls, until } from "./client.ts";
import type { Release } from "./old-release.ts";

export const chatModel = "gpt-5.4-nano";
const batchModel = "claude-haiku-5-5";
export const ownProviderKey = "sk-own-0123456789abcdefghij";
export const question = "How is the pump bled?";

/** What the earlier release had received and reported when its processes were killed. */
export type Filled = {
  adminKey: string;
  agentId: string;
  workflowId: string;
  finished: { runId: string; workflowRunId: string; documents: string[]; executionId: string };
  approvals: string[];
  batchJobs: string[];
  requests: number;
  costUsd: number;
};

const text = (body: Record<string, unknown>, field: string) => String(body[field]);

/** Makes some of everything that is stored, and leaves work at every stage; then kills all processes. */
export async function fillOldRelease(
  release: Release,
  { ownerKey, chats, batches }: { ownerKey: string; chats: FakeProvider; batches: FakeBatches },
): Promise<Filled> {
  const owner = makeCalls(release.url, ownerKey);
  const adminKey = text(await owner("/keys", { role: "admin", subject: "ana@acme.io" }), "key");
  await owner("/keys", { role: "member", subject: "service", name: "laptop" });
  await owner("/ai/providers/openai/key", { key: ownProviderKey }, { method: "PUT" });
  const documents = [];
  for (const content of ["The pump is bled at its valve.", "A lease protects a job from a second worker."]) {
    documents.push(text(await owner("/rag/ingest", { content }, { headers: { prefer: "wait=60" } }), "documentId"));
  }
  for (let n = 0; n < 3; n += 1) await chat(owner, `Chat ${n}`);
  const agent = { name: "A", model: chatModel, systemPrompt: "Answer.", tools: [{ type: "calculator", config: {} }] };
  const agentId = text(await owner("/agents", agent), "agentId");
  chats.next({ toolCalls: [{ id: "call_1", name: "calculator", arguments: '{"expression":"6*7"}' }] });
  const runId = text(await owner(`/agents/${agentId}/run`, { input: "What is 6*7?" }), "runId");
  const steps = [
    { type: "ai_completion", id: "draft", model: chatModel, prompt: "Draft." },
    { type: "human_approval", assigneeRole: "admin", message: "Send it?" },
    { type: "rag_query", query: "pump" },
  ];
  const workflowId = text(await owner("/workflows", { name: "W", description: "Approved.", steps }), "workflowId");
  const plain = text(
    await owner("/workflows", { name: "Plain", steps: [{ type: "rag_query", query: "pump" }] }),
    "workflowId",
  );
  const workflowRunId = text(await owner(`/workflows/${plain}/execute`, {}), "runId");
  for (let n = 0; n < 2; n += 1) await owner(`/workflows/${workflowId}/execute`, {}, later);
  await until("waiting approvals", async () => (await approvalsOf(owner)).length === 2);
  const composite = { pattern: "chain-of-thought", profile: "coding", input: "Why?", models: [chatModel] };
  const executionId = text(await owner("/composite/execute", composite), "executionId");
  batches.setDuration(3_600_000);
  const batchJobs = [];
  for (const n of [1, 2]) {
    const messages = [{ role: "user", content: `Batched ${n}` }];
    batchJobs.push(text(await owner("/ai/chat", { model: batchModel, prefer_async: true, messages }), "jobId"));
  }
  await until("batch in flight", () => batches.batches.flatMap(({ lines }) => lines).length === 2);
  chats.setDefault({ firstByteMs: 600_000 });
  const before = chats.requests.length;
  await owner(`/agents/${agentId}/run`, { input: "Interrupted." }, later);
  await owner(`/workflows/${workflowId}/execute`, {}, later);
  await owner("/composite/execute", { ...composite, input: "Interrupted." }, later);
  await until("work that is interrupted", () => chats.requests.length === before + 3);
  await release.killWorker();
  for (const n of [1, 2, 3]) await owner("/rag/ingest", { content: `Queued ${n}: the valve is open.` }, later);
  const { total } = (await owner("/usage")) as { total: { requests: number; costUsd: number } };
  const approvals = await approvalsOf(owner);
  await release.killAll();
  chats.setDefault({});
  const finished = { runId, workflowRunId, documents, executionId };
  return { adminKey, agentId, workflowId, finished, approvals, batchJobs, ...total };
}

/** A chat with the tenant's own key of the provider. */
export const chat = (call: Call, content: string) =>
  call("/ai/chat", { model: chatModel, messages: [{ role: "user", content }] });

async function approvalsOf(call: Call): Promise<string[]> {
  const { data } = (await call("/workflows/approvals")) as { data: { approvalId: string }[] };
  return data.map(({ approvalId }) => approvalId);
}
