import { expect } from "chai";
import { allRoutes } from "../../api/all-routes.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { callTool, rpc } from "../support/mcp-call.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const later = { headers: { prefer: "respond-async" } };

describe("a key that is limited to collections", () => {
  let test: TestPlatform;
  let owner: ApiClient;
  let limited: ApiClient;
  /** Of an admin's key with the same limit. */
  let admin: ApiClient;
  /** What another key has started, and what the limited key has. */
  let theirs: Work;
  let own: Work;

  type Work = Awaited<ReturnType<typeof startAll>>;
  const limitedTo = async (role: string, subject: string) => {
    const made = await owner.post("/keys", { role, subject, collections: ["pumps"] });
    return makeClient({ url: test.url, key: made.string("key") });
  };
  const agent = {
    name: "Desk",
    model: "meta-llm",
    systemPrompt: "You answer.",
    tools: [{ type: "rag_query", config: {} }],
  };
  const workflow = {
    name: "Ask",
    steps: [{ type: "human_approval", assigneeRole: "owner", message: "secret of a run" }],
  };
  const line = JSON.stringify({
    custom_id: "a",
    method: "POST",
    url: "/v1/chat/completions",
    body: { messages: [{ role: "user", content: "Hi" }] },
  });
  const message = {
    custom_id: "a",
    params: { model: "meta-llm", max_tokens: 10, messages: [{ role: "user", content: "Hi" }] },
  };

  /** Starts one job of each kind by a key. */
  async function startAll(client: ApiClient) {
    const ingest = await client.post(
      "/rag/ingest",
      { content: "A secret text.", title: "secret title", collection: "pumps" },
      later,
    );
    const { agentId } = (await owner.post("/agents", agent)).body as { agentId: string };
    const run = await client.post(`/agents/${agentId}/run`, { input: "secret question", sessionId: "desk" });
    const { workflowId } = (await owner.post("/workflows", workflow)).body as { workflowId: string };
    const waiting = await client.post(`/workflows/${workflowId}/execute`, {});
    const composite = await client.post("/composite/execute", {
      pattern: "chain-of-thought",
      profile: "coding",
      input: "secret thought",
    });
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new File([line], "secret.jsonl"));
    const file = await client.request("POST", "/v1/files", { raw: form });
    const batch = await client.post("/v1/batches", {
      input_file_id: file.string("id"),
      endpoint: "/v1/chat/completions",
      completion_window: "24h",
    });
    const messages = await client.post("/v1/messages/batches", { requests: [message] });
    for (const one of [ingest, run, waiting, composite, file, batch, messages])
      expect(one.status, one.text).to.be.below(300);
    const response = await client.post("/v1/responses", {
      model: "meta-llm",
      input: "secret input",
      background: true,
      stream: false,
    });
    const conversation = await client.post("/v1/conversations", {
      items: [{ type: "message", role: "user", content: "secret item" }],
    });
    for (const one of [response, conversation]) expect(one.status, one.text).to.equal(200);
    return {
      responseId: response.string("id"),
      conversationId: conversation.string("id"),
      agentId,
      workflowId,
      jobId: ingest.string("jobId"),
      runId: run.string("runId"),
      workflowRunId: waiting.string("runId"),
      waitingJobId: waiting.string("jobId"),
      executionId: composite.string("executionId"),
      batchId: batch.string("id"),
      messageBatchId: messages.string("id"),
    };
  }

  before(async function () {
    this.timeout(60_000);
    test = await startPlatform();
    owner = makeClient({ url: test.url, key: test.keys.owner });
    limited = await limitedTo("member", "limited@test");
    admin = await limitedTo("admin", "limited-admin@test");
    theirs = await startAll(makeClient({ url: test.url, key: test.keys.member }));
    own = await startAll(limited);
    await pollUntil(async () => {
      const { at } = await owner.get("/workflows/approvals");
      return (at("data") as object[]).length === 2;
    });
  });
  after(() => test?.close());

  const pathsOf = (of: Work) => [
    `/jobs/${of.jobId}`,
    `/jobs/${of.jobId}/events`,
    `/agents/${of.agentId}/runs/${of.runId}`,
    `/runs/${of.runId}/trail`,
    `/workflows/${of.workflowId}/runs/${of.workflowRunId}`,
    `/workflows/runs/${of.workflowRunId}`,
    `/composite/executions/${of.executionId}`,
    `/v1/batches/${of.batchId}`,
    `/v1/messages/batches/${of.messageBatchId}`,
    `/v1/messages/batches/${of.messageBatchId}/results`,
    `/v1/responses/${of.responseId}`,
    `/v1/responses/${of.responseId}/input_items`,
    `/v1/conversations/${of.conversationId}`,
    `/v1/conversations/${of.conversationId}/items`,
  ];
  const idsOf = (of: Work) => Object.values(of);

  it("reads its own work, and no work of others", async () => {
    for (const [client, of, isFound] of [
      [limited, own, true],
      [limited, theirs, false],
      [admin, theirs, false],
      [admin, own, false],
      [owner, own, true],
    ] as const) {
      for (const path of pathsOf(of)) {
        const { status, body } = await read(client, path);
        if (isFound) expect(status, path).to.be.oneOf([200, 400, 409]);
        else expect([status, JSON.stringify(body).includes("secret")], path).to.deep.equal([404, false]);
      }
    }
  });

  it("lists its own work alone", async () => {
    const lists = [
      "/jobs?limit=200",
      `/agents/${theirs.agentId}/runs`,
      `/agents/${own.agentId}/runs`,
      `/workflows/${theirs.workflowId}/runs`,
      `/workflows/${own.workflowId}/runs`,
      "/workflows/approvals",
      "/ai/logs?limit=200",
      "/v1/batches",
      "/v1/messages/batches",
      "/v1/files",
    ];
    const seen = new Set<string>();
    for (const path of lists) {
      const text = (await limited.get(path)).text;
      for (const id of idsOf(own)) if (text.includes(id)) seen.add(id);
      for (const id of idsOf(theirs)) if (!path.includes(id)) expect(text, path).not.to.include(id);
    }
    expect([...seen]).to.include.members([own.jobId, own.runId, own.workflowRunId, own.batchId, own.messageBatchId]);
    const logs = async (client: ApiClient, query = "") =>
      ((await client.get(`/ai/logs?limit=200${query}`)).at("data") as { keyId: string }[]).map(({ keyId }) => keyId);
    const [mine] = new Set(await logs(limited));
    expect(new Set(await logs(limited))).to.deep.equal(new Set([mine]));
    const others = (await logs(owner)).find((keyId) => keyId !== mine);
    expect(await logs(limited, `&keyId=${others}`)).to.deep.equal([]);
  });

  it("cancels and decides nothing of others", async () => {
    for (const path of [
      `/jobs/${theirs.waitingJobId}/cancel`,
      `/workflows/${theirs.workflowId}/runs/${theirs.workflowRunId}/cancel`,
      `/v1/batches/${theirs.batchId}/cancel`,
      `/v1/messages/batches/${theirs.messageBatchId}/cancel`,
    ]) {
      for (const client of [limited, admin]) expect((await client.post(path)).status, path).to.equal(404);
    }
    expect((await owner.get(`/jobs/${theirs.waitingJobId}`)).at("status")).to.equal("awaiting");
    for (const path of [`/v1/responses/${theirs.responseId}`, `/v1/conversations/${theirs.conversationId}`]) {
      expect((await limited.delete(path)).status, path).to.equal(404);
      expect((await owner.get(path)).status, path).to.equal(200);
    }
    expect((await limited.post(`/v1/responses/${theirs.responseId}/cancel`)).status).to.equal(404);
    const items = { items: [{ type: "message", role: "user", content: "mine" }] };
    expect((await limited.post(`/v1/conversations/${theirs.conversationId}/items`, items)).status).to.equal(404);
  });

  it("continues no response and no conversation of others", async () => {
    const ask = (more: object) =>
      limited.post("/v1/responses", { model: "meta-llm", input: "What was said?", ...more });
    const reference = { type: "item_reference", id: `msg_${theirs.responseId.slice("resp_".length)}_0` };
    for (const more of [
      { previous_response_id: theirs.responseId },
      { conversation: theirs.conversationId },
      { input: [reference] },
    ]) {
      const { status, text } = await ask(more);
      expect([status, text.includes("secret")], JSON.stringify(more)).to.deep.equal([404, false]);
    }
    expect((await ask({ conversation: own.conversationId })).status).to.equal(200);
  });

  it("deletes nothing of others", async () => {
    const removed = await limited.delete(`/v1/messages/batches/${theirs.messageBatchId}`);
    expect(removed.status).to.equal(404);
  });

  it("follows its own work alone", async () => {
    const leaving = new AbortController();
    const { events } = await limited.events("GET", "/jobs/events", { signal: leaving.signal });
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { data } of events) seen.push(JSON.stringify(data));
    })().catch(() => undefined);
    const other = await owner.post("/rag/ingest", { content: "Another secret.", collection: "pumps" });
    const mine = await limited.post("/rag/ingest", { content: "Mine.", collection: "pumps" });
    await pollUntil(() => seen.some((text) => text.includes(mine.string("documentId"))));
    leaving.abort();
    await reading;
    expect(seen.join()).not.to.include(other.string("documentId"));
  });

  it("finds no job of others by MCP, as a tool's result or as a task", async () => {
    for (const client of [limited, admin]) {
      const { isError, value } = await callTool(client, "svc_job", { jobId: theirs.jobId });
      expect([isError, JSON.stringify(value).includes("not_found")]).to.deep.equal([true, true]);
      for (const method of ["tasks/get", "tasks/cancel", "tasks/result"]) {
        const { text } = await client.post("/mcp", rpc(1, method, { taskId: theirs.waitingJobId }), {
          headers: { "mcp-protocol-version": "2025-11-25" },
        });
        expect(text, method).to.include("There is no such task");
      }
    }
  });

  it("gets the earlier turns of a session only if it has made them", async () => {
    const asked = await limited.post(`/agents/${theirs.agentId}/run`, {
      input: "What did I ask before?",
      sessionId: "desk",
    });
    expect(asked.status).to.equal(200);
    expect(asked.text).not.to.include("secret question");
  });

  it("publishes nothing, and changes no definition of others", async () => {
    const publish = { name: "desk", description: "Asks." };
    for (const client of [limited, admin]) {
      const published = await client.post("/agents", { ...agent, publish });
      expect([published.status, published.at("error.code")]).to.deep.equal([403, "insufficient_scope"]);
      const flow = await client.post("/workflows", { ...workflow, publish });
      expect([flow.status, flow.at("error.code")]).to.deep.equal([403, "insufficient_scope"]);
      const made = await client.post("/agents", agent);
      expect(made.status).to.equal(201);
      const path = `/agents/${made.string("agentId")}`;
      expect((await client.request("PUT", path, { body: { ...agent, publish } })).status).to.equal(403);
    }
    const theirsPath = `/agents/${theirs.agentId}`;
    expect((await admin.request("PUT", theirsPath, { body: agent })).status).to.equal(403);
    expect((await admin.delete(theirsPath)).status).to.equal(403);
    expect((await owner.get(theirsPath)).at("version")).to.equal(1);
  });

  it("changes no setting of the tenant", async () => {
    const ownerLimited = await limitedTo("owner", "limited-owner@test");
    const settings = allRoutes.filter(({ isForAllCollections }) => isForAllCollections);
    expect(settings.map(({ path }) => path)).to.include.members(["/rag/settings", "/rag/reindex", "/budget"]);
    for (const { method, path } of settings) {
      const { status, at } = await ownerLimited.request(
        method.toUpperCase(),
        path.replace(":name", "x").replace(":provider", "openai"),
        method === "get" ? {} : { body: {} },
      );
      expect([status, at("error.code")], `${method} ${path}`).to.deep.equal([403, "insufficient_scope"]);
    }
  });
});

/** Reads a path; of a stream the status alone. */
async function read(client: ApiClient, path: string): Promise<{ status: number; body: unknown }> {
  if (!path.endsWith("/events")) return client.get(path);
  const leaving = new AbortController();
  try {
    return { status: (await client.events("GET", path, { signal: leaving.signal })).status, body: {} };
  } catch (error) {
    return { status: Number(/\d+$/.exec(String(error))?.[0]), body: {} };
  } finally {
    leaving.abort();
  }
}
