import { makePdf } from "./documents.ts";
import { type GuardedPath, model, toOutcome } from "./guarded-paths.ts";
import type { ApiClient } from "./http-client.ts";
import { pollUntil } from "./poll-until.ts";

export type MoreClients = { admin: ApiClient; url: string; memberKey: string };
type Deps = MoreClients & {
  agentId: string;
  post(name: string, path: string, toBody: (text: string) => object, kind?: Partial<GuardedPath>): GuardedPath;
};

const asksNone = true;
const isExact = true;
const waiting = { headers: { prefer: "wait=20" } };

/** Paths of texts that are kept before, or without, a model. */
export async function morePaths(member: ApiClient, deps: Deps): Promise<GuardedPath[]> {
  const { post, agentId } = deps;
  const made = await member.post("/rag/ingest", { title: "Known", content: "A pump moves water." }, waiting);
  const known = `/rag/documents/${made.string("documentId")}`;
  const conversation = `/v1/conversations/${(await member.post("/v1/conversations", {})).string("id")}`;
  const store = `/v1/vector_stores/${(await member.post("/v1/vector_stores", { name: "Shelf" })).string("id")}`;
  const inUrl = (text: string) => `https://example.com/?about=${encodeURIComponent(text)}`;
  return [
    { name: "answer, streamed", asksNone, send: (text) => sayStreamed(deps, text) },
    post("query, reranked", "/rag/query", (query) => ({ query, rerank: { model: "judge/rerank-1" } }), { asksNone }),
    post("conversation, items", `${conversation}/items`, (text) => ({ items: [{ role: "user", content: text }] }), {
      asksNone,
    }),
    post("conversation, metadata", conversation, (text) => ({ metadata: { about: text } }), { asksNone }),
    post("compact", "/v1/responses/compact", (input) => ({ model, input })),
    post("input tokens", "/v1/responses/input_tokens", (input) => ({ model, input }), { asksNone }),
    post("agent's session", `/agents/${agentId}/run`, (sessionId) => ({ input: "Well?", sessionId }), { isExact }),
    post(
      "callback's address",
      `/agents/${agentId}/run`,
      (text) => ({ input: "Well?", callback: { url: inUrl(text) } }),
      { isExact },
    ),
    post("document's id", "/rag/ingest", (externalId) => ({ title: "Note", content: "A note.", externalId }), {
      isExact,
      asksNone,
    }),
    post("document's address", "/rag/ingest", (text) => ({ url: inUrl(text) }), { isExact, asksNone }),
    {
      name: "document, described",
      asksNone,
      send: async (text) =>
        toOutcome(await member.request("PATCH", known, { body: { title: text, metadata: { about: text } } })),
    },
    post("vector store, search", `${store}/search`, (query) => ({ query }), { asksNone }),
    post("vector store, metadata", store, (text) => ({ name: text, metadata: { about: text } }), { asksNone }),
    ...uploads(member, deps),
    { name: "schedule's input", asksNone, send: (text) => schedule(member, text, agentId) },
    { name: "approval's comment", asksNone, send: await approvals(member, deps.admin) },
  ];
}

async function sayStreamed({ url, memberKey }: Deps, query: string) {
  const body = JSON.stringify({ query, model, minCoverage: 0, stream: true });
  const headers = { authorization: `Bearer ${memberKey}`, "content-type": "application/json" };
  const said = await (await fetch(`${url}/rag/answer`, { method: "POST", headers, body })).text();
  const code = /"code":"(\w+)"/.exec(said)?.[1];
  return { said, ...(code && { refusal: code }) };
}

/** Files as they are uploaded, for documents and for batches. */
function uploads(member: ApiClient, { url, memberKey }: Deps): GuardedPath[] {
  const headers = { authorization: `Bearer ${memberKey}`, prefer: "wait=20" };
  const send = async (path: string, file: File, fields: Record<string, string> = {}) => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    form.set("file", file);
    const sent = await fetch(`${url}${path}`, { method: "POST", headers, body: form });
    const text = await sent.text();
    return { status: sent.status, text, body: JSON.parse(text) as unknown };
  };
  const keep = async (file: File, purpose: string) => {
    const kept = await send("/v1/files", file, { purpose });
    if (kept.status !== 200) return toOutcome(kept);
    const said = await (await fetch(`${url}/v1/files/${Object(kept.body).id}/content`, { headers })).text();
    return { said, ...(said.includes("guardError") && { refusal: "compliance_blocked" }) }; // a line fails alone
  };
  const chat = (text: string) => ({ model: "meta-llm", messages: [{ role: "user", content: text }] });
  const line = (text: string) => ({ custom_id: "a", method: "POST", url: "/v1/chat/completions", body: chat(text) });
  return [
    {
      name: "document of a PDF",
      asksNone,
      send: async (text) =>
        toOutcome(await send("/rag/ingest", new File([new Uint8Array(await makePdf([text]))], "note.pdf"))),
    },
    {
      name: "document of a text file",
      asksNone,
      send: async (text) => toOutcome(await send("/rag/ingest", new File([text], "note.txt", { type: "text/plain" }))),
    },
    { name: "file", asksNone, send: (text) => keep(new File([`A note.\n${text}\n`], "note.txt"), "assistants") },
    {
      name: "file of a batch",
      asksNone,
      send: (text) => keep(new File([`${JSON.stringify(line(text))}\n`], "lines.jsonl"), "batch"),
    },
    {
      name: "batch of messages",
      asksNone,
      async send(text) {
        const params = { ...chat(text), max_tokens: 50 };
        const made = await member.post("/v1/messages/batches", { requests: [{ custom_id: "a", params }] });
        const path = `/v1/messages/batches/${made.string("id")}`;
        await pollUntil(async () => (await member.get(path)).at("processing_status") === "ended", {
          timeoutMs: 30_000,
        });
        const said = await (await fetch(`${url}${path}/results`, { headers })).text();
        return { said, ...(said.includes('"errored"') && { refusal: "compliance_blocked" }) };
      },
    },
  ];
}

async function schedule(member: ApiClient, text: string, agentId: string) {
  const at = new Date(Date.now() + 86_400_000).toISOString();
  const made = await member.post("/schedules", { name: "Later", at, target: { agentId }, input: text });
  if (made.status !== 201) return toOutcome(made);
  const path = `/schedules/${made.string("scheduleId")}`;
  const { text: said } = await member.get(path);
  await member.request("DELETE", path);
  return { said };
}

async function approvals(member: ApiClient, admin: ApiClient) {
  const steps = [{ type: "human_approval", id: "ask", message: "Well?", assigneeRole: "admin" }];
  const made = await member.post("/workflows", { name: "Asks", steps });
  const path = `/workflows/${made.string("workflowId")}`;
  return async (text: string) => {
    const runId = (await member.post(`${path}/execute`, { input: {} })).string("runId");
    const approvalId = await pollUntil(async () => {
      const run = await member.get(`${path}/runs/${runId}`);
      return run.at("status") === "awaiting_approval" ? run.string("awaiting.approvalId") : undefined;
    });
    const body = { decision: "approved", comment: text };
    const decided = await admin.post(`/workflows/approvals/${approvalId}/decide`, body);
    if (decided.status !== 200) await member.post(`${path}/runs/${runId}/cancel`, {});
    return toOutcome(decided);
  };
}
