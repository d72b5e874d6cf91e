import { expect } from "chai";
import { allRoutes } from "../../api/all-routes.ts";
import { type AnyRoute, isForTenants } from "../../api/route.ts";
import { customProviderRoutes } from "../../api/routes/custom-providers.ts";
import { newId } from "../../src/lib/ids.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const SECRET = "The walrus of the first tenant sleeps under the seventh lighthouse.";
const closedRoutes = allRoutes.filter((route) => isForTenants(route.auth));
/** Routes with ids of records; names of providers, models and events are the same for everybody, and any tenant may set a name. */
const hasRecordId = ({ method, path }: AnyRoute) =>
  path.includes(":") &&
  !/:(?:provider|model)\b|^\/events\//.test(path) &&
  !(method === "put" && path.endsWith("/:name"));
const nameOf = (route: AnyRoute) => `${route.method.toUpperCase()} ${route.path}`;

/** Anthropic's shape of errors has no code. */
const reasonOf = ({ at }: ApiResponse) => at("error.code") ?? String(at("error.type")).replace(/_error$/, "");

describe("every route that needs a key", () => {
  let platform: TestPlatform;
  let owner: ApiClient;
  let stranger: ApiClient;
  /** For each path with an id: one of the first tenant's, which the route serves to its owner. */
  let ids: Record<string, string>;
  before(async () => {
    platform = await startPlatform();
    owner = makeClient({ url: platform.url, key: platform.keys.owner });
    stranger = makeClient({ url: platform.url, key: platform.keys.stranger });
    const headers = { prefer: "respond-async" };
    const job = await owner.post("/rag/ingest", { title: "Walrus", content: SECRET }, { headers });
    const document = await owner.post("/rag/ingest", { title: "Walrus 2", content: `${SECRET} Twice.` });
    const chat = await owner.post("/ai/chat", { messages: [{ role: "user", content: SECRET }] });
    const conversation = await owner.post("/v1/conversations", { metadata: { topic: SECRET } });
    const item = await owner.post(`/v1/conversations/${conversation.string("id")}/items`, {
      items: [{ role: "user", content: SECRET }],
    });
    const response = await owner.post("/v1/responses", { model: "meta-llm", input: SECRET });
    const keys = await owner.get("/keys");
    const run = await owner.post("/composite/execute", { pattern: "critique", profile: "content", input: SECRET });
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new Blob([SECRET]), "walrus.jsonl");
    const file = await owner.request("POST", "/v1/files", { raw: form });
    const fileBatch = { input_file_id: file.string("id"), endpoint: "/v1/embeddings", completion_window: "24h" };
    const batch = await owner.post("/v1/batches", fileBatch);
    const requests = [{ custom_id: "walrus", params: { model: "meta-llm", max_tokens: 20, messages: [] } }];
    const messages = await owner.post("/v1/messages/batches", { requests });
    await pollUntil(async () => (await owner.get(`/v1/messages/batches/${messages.string("id")}`)).at("ended_at"));
    const agent = await owner.post("/agents", { name: "Walrus", model: "meta-llm", systemPrompt: SECRET });
    const agentRun = await owner.post(`/agents/${agent.string("agentId")}/run`, { input: "Where does it sleep?" });
    const steps = [{ type: "human_approval", assigneeRole: "owner", message: SECRET }];
    const workflow = await owner.post("/workflows", { name: "Walrus", steps });
    const workflowRun = await owner.post(`/workflows/${workflow.string("workflowId")}/execute`, { input: SECRET });
    const approvalId = await pollUntil(async () => (await owner.get("/workflows/approvals")).at("data[0].approvalId"));
    await owner.post("/rag/ingest", { title: "Walrus 3", content: SECRET, collection: "walrus" });
    const vectorStore = await owner.post("/v1/vector_stores", { name: "Walrus" });
    const path = `/v1/vector_stores/${vectorStore.string("id")}`;
    const documentFile = new FormData();
    documentFile.set("purpose", "assistants");
    documentFile.set("file", new Blob([SECRET]), "walrus.txt");
    const uploaded = await owner.request("POST", "/v1/files", { raw: documentFile });
    const storeFile = { file_id: uploaded.string("id") };
    const storeBatch = await owner.post(`${path}/file_batches`, { files: [storeFile] });
    const provider = customProviderRoutes.find(({ method }) => method === "put");
    await owner.request("PUT", "/ai/providers/custom/walrus", { body: provider?.example });
    const tool = await owner.post("/rag/tools", { name: "walrus", description: SECRET });
    const target = { workflowId: workflow.string("workflowId") };
    const schedule = await owner.post("/schedules", { name: SECRET, cron: "0 9 * * *", target });
    const trigger = await owner.post("/triggers", { event: "walrus", target });
    const source = await owner.post("/event-sources", { name: SECRET, kind: "github", event: "walrus" });
    const webhook = await owner.post("/webhooks", { url: "https://walrus.example.com/", events: ["job.failed"] });
    const deliveryId = newId("delivery");
    await platform.platform.store.deliveries.ensure({
      ...{
        _id: deliveryId,
        tenantId: await tenantOf(platform),
        webhookId: webhook.string("webhookId"),
        owner: "walrus",
      },
      ...{ url: "https://walrus.example.com/", type: "job.failed", body: "{}", status: "failed", attempts: 1, log: [] },
      ...{ createdAt: new Date(), since: new Date(), expireAt: new Date(Date.now() + 3_600_000) },
    });
    ids = {
      "/schedules/:id": schedule.string("scheduleId"),
      "/triggers/:id": trigger.string("triggerId"),
      "/event-sources/:id": source.string("sourceId"),
      "/webhooks/:id": webhook.string("webhookId"),
      "/webhooks/:id/deliveries/:deliveryId": deliveryId,
      "/rag/tools/:id": tool.string("toolId"),
      "/ai/providers/custom/:name": "walrus",
      "/rag/collections/:name": "walrus",
      "/v1/vector_stores/:id": vectorStore.string("id"),
      "/v1/vector_stores/:id/files/:fileId": uploaded.string("id"),
      "/v1/vector_stores/:id/file_batches/:batchId": storeBatch.string("id"),
      "/workflows/:id": workflow.string("workflowId"),
      "/workflows/:id/runs/:runId": workflowRun.string("runId"),
      "/workflows/runs/:runId": workflowRun.string("runId"),
      "/workflows/approvals/:id": String(approvalId),
      "/agents/:id": agent.string("agentId"),
      "/agents/:id/versions/:version": "1",
      "/workflows/:id/versions/:version": "1",
      "/agents/:id/runs/:runId": agentRun.string("runId"),
      "/runs/:runId": agentRun.string("runId"),
      "/jobs/:id": job.string("jobId"),
      "/rag/documents/:id": document.string("documentId"),
      "/ai/logs/:logId": chat.string("logId"),
      "/keys/:id": keys.string("data[0].keyId"),
      "/composite/executions/:id": run.string("executionId"),
      "/v1/files/:id": file.string("id"),
      "/v1/batches/:id": batch.string("id"),
      "/v1/messages/batches/:id": messages.string("id"),
      "/v1/conversations/:id": conversation.string("id"),
      "/v1/conversations/:id/items/:itemId": item.string("data[0].id"),
      "/v1/responses/:id": response.string("id"),
    };
  });
  after(() => platform.close());

  const send = (client: ApiClient, route: AnyRoute, path: string, body = JSON.stringify(route.example ?? {})) =>
    client.request(route.method.toUpperCase(), path, {
      ...(route.body ? { raw: body, headers: { "content-type": "application/json" } } : {}),
    });
  /** The path with an id of the first tenant in the place of each parameter. */
  const pathFor = (route: AnyRoute) =>
    route.path.replace(/:\w+/g, (parameter, at: number) => {
      const id = ids[route.path.slice(0, at + parameter.length)];
      if (id === undefined) throw new Error(`Tell this test an id of the first tenant for ${route.path}`);
      return id;
    });

  for (const route of closedRoutes) {
    it(`${nameOf(route)} is a 401 without a key, and with an unknown one`, async () => {
      const path = route.path.replace(/:\w+/g, "x");
      for (const key of [undefined, `sk_${"0".repeat(32)}`]) {
        expect((await send(makeClient({ url: platform.url, key }), route, path)).status).to.equal(401);
      }
    });
  }

  for (const route of closedRoutes.filter((each) => each.body)) {
    it(`${nameOf(route)} answers malformed JSON and wrong types with a 400`, async () => {
      const path = hasRecordId(route)
        ? pathFor(route)
        : route.path.replace(":provider", "openai").replace(":name", "walrus");
      for (const body of ['{"a":', "[]", '"text"', "7", "null", `{"x":${"[".repeat(200)}${"]".repeat(200)}}`]) {
        expect((await send(owner, route, path, body)).status, body.slice(0, 20)).to.equal(400);
      }
    });
  }

  for (const route of closedRoutes.filter(hasRecordId)) {
    it(`${nameOf(route)} is a 404 for another tenant's id`, async () => {
      const foreign = await send(stranger, route, pathFor(route));
      expect([foreign.status, reasonOf(foreign)]).to.deep.equal([404, "not_found"]);
      expect(foreign.text).not.to.contain("walrus");
    });
    it(`${nameOf(route)} answers another tenant's id as one that does not exist`, async () => {
      const path = pathFor(route);
      const foreign = await send(stranger, route, path);
      const absent = await send(stranger, route, path.replace(/_[0-9A-Z]{26}/, "_01J00000000000000000000000"));
      const view = (reply: ApiResponse) => [reply.status, reasonOf(reply), reply.at("error.message")];
      expect(view(foreign)).to.deep.equal(view(absent));
    });
    it(`${nameOf(route)} is a 404 for invalid ids`, async () => {
      for (const id of ["x", "..%2f..", "job_", "%00", "doc_01J0000000000000000000000I", "a".repeat(300)]) {
        expect((await send(owner, route, route.path.replace(/:\w+/, id))).status, id).to.equal(404);
      }
    });
  }

  /** Not streams, which do not end: theirs is in test/http/jobs.test.ts. */
  const lists = closedRoutes.filter(
    ({ method, path, responses }) => method === "get" && !path.includes(":") && responses[200]?.events === undefined,
  );
  for (const route of lists) {
    it(`${nameOf(route)} shows another tenant nothing of the first one`, async () => {
      const { status, text } = await stranger.get(`${route.path}`);
      expect(status).to.equal(200);
      const secrets = Object.values(ids).filter((id) => id !== "1"); // versions count from it in each tenant
      for (const secret of [...secrets, "alrus"]) expect(text).not.to.contain(secret);
    });
  }

  it("another tenant's queries find nothing of the first one, in any mode, even if they name its document", async () => {
    for (const mode of ["vector", "lexical", "hybrid"]) {
      for (const documentIds of [undefined, [ids["/rag/documents/:id"]]]) {
        const query = { query: SECRET, topK: 20, mode, ...(documentIds ? { documentIds } : {}) };
        const own = await owner.post("/rag/query", query);
        expect(own.at("results"), `${mode}: its own tenant finds it`).to.have.length.above(0);
        const { status, text } = await stranger.post("/rag/query", query);
        expect(status).to.be.oneOf([200, 404]);
        expect(text).not.to.contain("alrus").and.not.to.contain(ids["/rag/documents/:id"]);
      }
    }
  });

  it("after all of that the first tenant's data is as it was", async () => {
    for (const path of Object.keys(ids)) {
      const route = closedRoutes.find((each) => each.path === path && each.method === "get");
      if (route) expect((await owner.get(pathFor(route))).status, path).to.equal(200);
    }
    const { text } = await owner.get("/keys");
    expect(text).to.contain(ids["/keys/:id"]);
  });
});
