import { expect } from "chai";
import { makePdf } from "../support/documents.ts";
import type { ApiResponse } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { chatModel as model, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const CARD = "4012 8888 8888 1881";
const isCard = (place: string, action: string, count: number) => ({ kind: "card_number", place, action, count });

describe("what guards have found", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness({ env: { RECONCILE_EVERY_MS: "100", STORE_COMPLETION_CONTENT: "true" } });
    harness.model.play(({ messages }) => ({ text: `You said: ${String(messages.at(-1)?.content)}` }));
  });
  after(() => harness?.close());

  const set = async (actions: object) => {
    const put = await harness.admin.request("PUT", "/guards", { body: { rules: { card_number: actions } } });
    expect(put.status, put.text).to.equal(200);
  };
  const newest = async (): Promise<ApiResponse> => {
    await harness.test.platform.gateway.flush();
    const { logId } = ((await harness.admin.get("/ai/logs?limit=1")).at("data") as { logId: string }[])[0] ?? {};
    return harness.admin.get(`/ai/logs/${logId}`);
  };

  it("is on the record of a run and of its job, from its input to its answers", async () => {
    await set({ input: "mask", output: "flag" });
    const agent = { name: "Echo", systemPrompt: "Say it again.", model };
    const agentId = (await harness.admin.post("/agents", agent)).string("agentId");
    const run = await harness.admin.post(`/agents/${agentId}/run`, { input: `Pay ${CARD}, or 4242 4242 4242 4242.` });
    expect(run.headers.get("x-svc-guard")).to.equal("card_number;place=input;action=mask;count=2");
    const found = [isCard("input", "mask", 2)];
    const view = await harness.admin.get(`/agents/${agentId}/runs/${run.string("runId")}`);
    expect(view.at("guard")).to.deep.equal(found);
    expect((await harness.admin.get(`/jobs/${view.string("jobId")}`)).at("guard")).to.deep.equal(found);

    await set({ input: "flag", output: "mask" });
    const steps = [{ type: "ai_completion", id: "first", model, prompt: "Say: {{ input.text }}" }];
    const flow = await harness.run(steps, { text: CARD });
    const all = [isCard("input", "flag", 2), isCard("output", "mask", 1)]; // as it is accepted, and as it goes to the model
    expect(flow.at("guard")).to.deep.equal(all);
    expect((await harness.admin.get(`/jobs/${flow.string("jobId")}`)).at("guard")).to.deep.equal(all);
    const listed = (await harness.admin.get("/jobs?limit=1")).at("data[0].guard");
    expect(listed).to.deep.equal(all);

    const body = { pattern: "chain-of-thought", profile: "coding", input: CARD, models: [model] };
    const made = await harness.admin.post("/composite/execute", body, { headers: { prefer: "wait=20" } });
    const trace = await harness.admin.get(`/composite/executions/${made.string("executionId")}`);
    expect(JSON.stringify(trace.at("guard")), trace.text).to.contain('"place":"input","action":"flag"');
  });

  it("is on the record of a document's job, and of none that found nothing", async () => {
    await set({ ingest: "mask" });
    const waiting = { headers: { prefer: "wait=20" } };
    const made = await harness.admin.post("/rag/ingest", { title: "Note", content: `It is ${CARD}.` }, waiting);
    const guardOf = async (documentId: string) => {
      const jobId = (await harness.admin.get(`/rag/documents/${documentId}`)).string("jobId");
      return Object((await harness.admin.get(`/jobs/${jobId}`)).body).guard;
    };
    expect(await guardOf(made.string("documentId"))).to.deep.equal([isCard("ingest", "mask", 1)]);
    const clear = await harness.admin.post("/rag/ingest", { title: "Note", content: "It is nothing." }, waiting);
    expect(await guardOf(clear.string("documentId"))).to.equal(undefined);
    expect(clear.headers.get("x-svc-guard")).to.equal(null);
  });

  it("is in no source: one that has to be parsed is kept until its job has ended, and where nothing is guarded", async () => {
    const bytes = new Uint8Array(await makePdf([`The card ${CARD} works.`]));
    const ingest = async () => {
      const form = new FormData();
      form.set("file", new File([bytes], "card.pdf"));
      const headers = { authorization: `Bearer ${harness.test.keys.admin}`, prefer: "wait=20" };
      const sent = await fetch(`${harness.test.url}/rag/ingest`, { method: "POST", headers, body: form });
      const { documentId, error } = Object(await sent.json());
      const id = documentId ?? error.details.documentId;
      const kept = await harness.test.platform.store.sources.read(await tenantOf(harness.test), id);
      return { isKept: kept !== null, code: error?.code };
    };
    await set({});
    expect(await ingest()).to.deep.equal({ isKept: true, code: undefined });
    await set({ ingest: "mask" });
    expect(await ingest()).to.deep.equal({ isKept: false, code: undefined });
    const said = (await harness.admin.post("/rag/query", { query: "Which card works?" })).text;
    expect(said).to.contain("[CARD_1]");
    await set({ ingest: "block" });
    expect(await ingest()).to.deep.equal({ isKept: false, code: "compliance_blocked" });
  });

  it("is in the log of a call that they blocked, without its texts", async () => {
    await set({ input: "block" });
    const asked = { model, messages: [{ role: "user", content: `The words that I say: ${CARD}` }] };
    const paths: [string, object, string][] = [
      ["/ai/chat", asked, "chat"],
      ["/v1/responses", { model, input: asked.messages }, "chat"],
      ["/v1/responses", { model, input: asked.messages, store: false }, "chat"],
      ["/v1/embeddings", { model: "text-embedding-3-small", input: CARD }, "embedding"],
    ];
    for (const [path, body, kind] of paths) {
      const before = (await newest()).at("logId");
      const refused = await harness.member.post(path, body);
      expect(refused.status, refused.text).to.equal(422);
      const log = await newest();
      expect(log.at("logId"), path).to.not.equal(before);
      expect(log.body, path).to.include({ kind, status: "blocked", costUsd: 0, attempts: 0, inputTokens: 0 });
      expect(log.at("guard"), path).to.deep.equal([isCard("input", "block", 1)]);
      expect(log.text, path).to.not.match(/4012|words that I say/);
    }
    const blocked = await harness.admin.get("/ai/logs?status=blocked");
    expect(blocked.at("data")).to.have.length(paths.length);
  });

  it("is in the log of an answer that they blocked, with what it cost and without its texts", async () => {
    await set({ output: "block" });
    harness.model.play(() => ({ text: `The words of the answer: ${CARD}` }));
    const body = { model, messages: [{ role: "user", content: "Which one?" }] };
    expect((await harness.member.post("/ai/chat", body)).status).to.equal(422);
    const log = await newest();
    expect(log.body).to.include({ status: "blocked", attempts: 1 });
    expect(log.body).to.not.have.property("content");
    expect(log.text).to.not.match(/4012|Which one|words of the answer/);
    expect(log.at("guard")).to.deep.equal([isCard("output", "block", 1)]);
  });

  it("is told to webhooks where they block, once for what a caller sends within a second, and never the value", async () => {
    const hook = { url: `${harness.site.origin}/guard`, events: ["guard.blocked"] };
    expect((await harness.admin.post("/webhooks", hook)).status).to.equal(201);
    await set({ input: "block", ingest: "block" });
    const requestId = "guarded-1";
    const refused = await harness.member.post(
      "/ai/chat",
      { model, messages: [{ role: "user", content: `${CARD} and 4242 4242 4242 4242` }] },
      { headers: { "x-request-id": requestId } },
    );
    expect(refused.status).to.equal(422);
    expect((await harness.admin.post("/rag/ingest", { title: CARD, content: "A note." })).status).to.equal(422);
    const messages = await pollUntil(async () => {
      const got = harness.site.requests.filter(({ path }) => path === "/guard");
      return got.length >= 2 ? got : undefined;
    });
    const all = messages.map(({ body }) => JSON.parse(body));
    const [chat, document] = [
      all.find(({ data }) => data.requestId === requestId),
      all.find(({ data }) => data.requestId !== requestId),
    ];
    const keyId = (await harness.member.get("/me")).at("keyId");
    expect(chat).to.deep.include({ type: "guard.blocked" });
    expect(chat.data).to.deep.equal({ keyId, requestId, calls: 1, found: [isCard("input", "block", 2)] });
    expect(document.data.found).to.deep.equal([isCard("ingest", "block", 1)]);
    expect(JSON.stringify(all)).to.not.match(/4012|4242/);
  });

  it("is told to webhooks where a regulated profile refuses, whatever the policy, as a pattern and as a model", async () => {
    const hook = { url: `${harness.site.origin}/profile`, events: ["guard.blocked"] };
    expect((await harness.admin.post("/webhooks", hook)).status).to.equal(201);
    await harness.admin.request("PUT", "/guards", { body: {} });
    const input = "His number is 219-09-8642, and hers is 219-09-8643.";
    const asked: [string, object][] = [
      ["/composite/execute", { pattern: "chain-of-thought", profile: "healthcare", input }],
      [
        "/v1/chat/completions",
        { model: "composite:chain-of-thought:healthcare", messages: [{ role: "user", content: input }] },
      ],
    ];
    for (const [at, [path, body]] of asked.entries()) {
      const refused = await harness.member.post(path, body, { headers: { "x-request-id": `profile-${at}` } });
      expect(refused.status, refused.text).to.equal(422);
    }
    const messages = await pollUntil(async () => {
      const got = harness.site.requests.filter(({ path }) => path === "/profile");
      return got.length >= asked.length ? got : undefined;
    });
    const all = messages.map(({ body }) => JSON.parse(body).data);
    const keyId = (await harness.member.get("/me")).at("keyId");
    const found = [{ kind: "ssn", place: "input", action: "block", count: 2 }];
    for (const [at] of asked.entries())
      expect(all).to.deep.include({ keyId, requestId: `profile-${at}`, calls: 1, found });
    expect(JSON.stringify(messages.map(({ body }) => body))).to.not.contain("219-09");
  });
});
