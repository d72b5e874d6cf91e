import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { MongoNetworkError } from "mongodb";
import { Webhook } from "standardwebhooks";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

type Received = {
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  type: string;
  data: Record<string, unknown>;
};
type Delivery = { deliveryId: string; type: string; status: string; attempts: number; log: { status?: number }[] };

describe("a webhook of a tenant", () => {
  let receiver: Server;
  let origin: string;
  let test: TestPlatform;
  let admin: ApiClient;
  let member: ApiClient;
  const received: Received[] = [];
  let answers: number[] = [];

  before(async () => {
    receiver = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const text = Buffer.concat(chunks).toString();
      received.push({ path: request.url ?? "", headers: request.headers, text, ...JSON.parse(text) });
      response.writeHead(answers.shift() ?? 200).end();
    });
    receiver.listen(0, "127.0.0.1");
    await once(receiver, "listening");
    origin = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: origin, RECONCILE_EVERY_MS: "100" } });
    admin = makeClient({ url: test.url, key: test.keys.admin });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await test.close();
    receiver.closeAllConnections();
    receiver.close();
  });

  const make = async (path: string, events: string[]) => {
    const made = await admin.post("/webhooks", { url: `${origin}${path}`, events });
    expect(made.status, made.text).to.equal(201);
    return made.string("webhookId");
  };
  const at = (path: string) => received.filter((one) => one.path === path);
  const arrived = (path: string, count = 1) =>
    pollUntil(async () => (at(path).length >= count ? at(path) : null), { what: `${count} messages at ${path}` });
  const deliveries = async (id: string) => (await admin.get(`/webhooks/${id}/deliveries`)).at("data") as Delivery[];
  const runWorkflow = async (steps: object[]) => {
    const made = await member.post("/workflows", { name: "Told", steps });
    return member.post(`/workflows/${made.string("workflowId")}/execute`, { input: {} });
  };
  // biome-ignore lint/suspicious/noThenProperty: a condition's branch
  const quiet = [{ type: "condition", expression: "true", then: [] }];
  // biome-ignore lint/suspicious/noThenProperty: a condition's branch
  const failing = [{ type: "condition", expression: "input.missing.field == 1", then: [] }];

  it("is told of the end of jobs, signed, of the types that it names alone", async () => {
    const id = await make("/failed", ["job.failed"]);
    const all = await make("/all", ["job.completed", "job.failed"]);
    const good = await runWorkflow(quiet);
    const bad = await runWorkflow(failing);
    await arrived("/all", 2);
    const [message] = await arrived("/failed");
    expect(message).to.deep.include({ type: "job.failed" });
    expect(message?.data).to.include({ jobId: bad.at("jobId"), kind: "workflow", status: "failed" });
    const completed = at("/all").find(({ type }) => type === "job.completed");
    expect(completed?.data.jobId).to.equal(good.at("jobId"));
    const { secret } = (await admin.get("/webhooks/secret")).body as { secret: string };
    new Webhook(secret).verify(message?.text ?? "", message?.headers as Record<string, string>);
    const [delivery] = await pollUntil(
      async () => {
        const found = await deliveries(id);
        return found[0]?.status === "delivered" ? found : null;
      },
      { what: "the log" },
    );
    expect(delivery).to.include({ deliveryId: message?.headers["webhook-id"], attempts: 1 });
    expect(at("/failed")).to.have.length(1);
    for (const each of [id, all]) await admin.delete(`/webhooks/${each}`);
  });

  it("is told of the next job once its replacement names jobs", async () => {
    const id = await make("/replaced", ["approval.requested"]);
    await runWorkflow(quiet);
    const body = { url: `${origin}/replaced`, events: ["job.completed"] };
    expect((await admin.request("PUT", `/webhooks/${id}`, { body })).status).to.equal(200);
    const job = await runWorkflow(quiet);
    const [message] = await arrived("/replaced");
    expect(message?.data.jobId).to.equal(job.at("jobId"));
    await admin.delete(`/webhooks/${id}`);
  });

  it("is told again until it accepts, and on request once more", async () => {
    answers = [500];
    const id = await make("/again", ["job.completed"]);
    await runWorkflow(quiet);
    await arrived("/again");
    const [first] = await pollUntil(
      async () => {
        const found = await deliveries(id);
        return found[0]?.log.length === 1 ? found : null;
      },
      { what: "the attempt in the log" },
    );
    expect(first).to.include({ status: "pending", attempts: 1 });
    expect(first?.log[0]?.status).to.equal(500);
    const early = await admin.post(`/webhooks/${id}/deliveries/${first?.deliveryId}/replay`);
    expect(early.at("error.code")).to.equal("wrong_state");
    const { deliveries: store } = test.platform.store;
    const record = await store.get(await tenantOf(test), first?.deliveryId ?? "");
    if (record) await store.putOff(record, { nextAt: new Date() });
    await arrived("/again", 2);
    const isDone = async () => ((await deliveries(id))[0]?.status === "delivered" ? true : null);
    await pollUntil(isDone, { what: "the delivery" });
    expect((await admin.post(`/webhooks/${id}/deliveries/${first?.deliveryId}/replay`)).status).to.equal(202);
    const ids = (await arrived("/again", 3)).map(({ headers }) => headers["webhook-id"]);
    expect(new Set(ids).size).to.equal(1);
    await pollUntil(isDone, { what: "the replay" });
    await admin.delete(`/webhooks/${id}`);
  });

  it("shows no failure of a message that was accepted, when the store could not note that", async () => {
    const { deliveries: store } = test.platform.store;
    const { end } = store;
    const away = Promise.withResolvers<void>();
    store.end = async () => {
      store.end = end;
      setImmediate(away.resolve); // after what follows on it
      throw new MongoNetworkError("the store is away");
    };
    const id = await make("/noted", ["job.completed"]);
    await runWorkflow(quiet);
    await away.promise;
    const [first] = await deliveries(id);
    expect(first).to.deep.include({ status: "pending", attempts: 1, log: [] });
    const record = await store.get(await tenantOf(test), first?.deliveryId ?? "");
    if (record) await store.putOff(record, { nextAt: new Date() });
    const isDone = async () => ((await deliveries(id))[0]?.status === "delivered" ? deliveries(id) : null);
    const [again] = await pollUntil(isDone, { what: "the delivery" });
    expect(again?.log.map(({ status }) => status)).to.deep.equal([200]);
    expect(new Set(at("/noted").map(({ headers }) => headers["webhook-id"])).size).to.equal(1);
    await admin.delete(`/webhooks/${id}`);
  });

  it("is told of approvals, when they are asked for and when they are decided", async () => {
    const id = await make("/approvals", ["approval.requested", "approval.decided"]);
    await runWorkflow([{ type: "human_approval", assigneeRole: "admin", message: "Send it?" }]);
    const [asked] = await arrived("/approvals");
    expect(asked?.type).to.equal("approval.requested");
    expect(asked?.data).to.include({ kind: "workflow", status: "pending", assigneeRole: "admin" });
    expect(asked?.data, "ids, and no contents").to.not.have.property("message");
    await admin.post(`/workflows/approvals/${asked?.data.approvalId}/decide`, { decision: "rejected", comment: "No." });
    const [, decided] = await arrived("/approvals", 2);
    expect(decided?.type).to.equal("approval.decided");
    expect(decided?.data).to.include({ status: "rejected", decidedBy: "admin@test", comment: "No." });
    await admin.delete(`/webhooks/${id}`);
  });

  it("is told once when the budget of the month is nearly, and when it is wholly used", async () => {
    const tenantId = await tenantOf(test);
    const id = await make("/budget", ["budget.nearly_exhausted", "budget.exhausted"]);
    const month = new Date().toISOString().slice(0, 7);
    await test.platform.gateway.setBudget(tenantId, 10);
    await test.platform.store.budgets.begin(tenantId, month, { limitNanoUsd: 10e9, leftNanoUsd: 0 });
    await pollUntil(async () => (at("/budget").length === 2 ? true : null), { what: "the budget", timeoutMs: 45_000 });
    expect(at("/budget").map(({ type }) => type)).to.have.members(["budget.nearly_exhausted", "budget.exhausted"]);
    expect(at("/budget")[0]?.data).to.include({ month, limitUsd: 10, leftUsd: 0 });
    await test.platform.gateway.setBudget(tenantId, null);
    await admin.delete(`/webhooks/${id}`);
  }).timeout(60_000);

  it("is an admin's, of one tenant, and never calls a forbidden address", async () => {
    const body = { url: `${origin}/x`, events: ["job.failed"] };
    expect((await member.post("/webhooks", body)).at("error.code")).to.equal("insufficient_role");
    const inside = await admin.post("/webhooks", { ...body, url: "http://169.254.169.254/latest" });
    expect([inside.at("error.code"), inside.at("error.param")]).to.deep.equal(["source_refused", "url"]);
    expect((await admin.post("/webhooks", { ...body, events: ["job.started"] })).status).to.equal(400);
    const id = await make("/ours", ["job.failed"]);
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    expect((await stranger.get(`/webhooks/${id}`)).status).to.equal(404);
    expect((await stranger.get(`/webhooks/${id}/deliveries`)).status).to.equal(404);
    const put = await admin.request("PUT", `/webhooks/${id}`, { body: { ...body, enabled: false } });
    expect(put.body).to.include({ enabled: false, version: 2 });
    await runWorkflow(failing);
    expect(await deliveries(id)).to.deep.equal([]);
  });
});
