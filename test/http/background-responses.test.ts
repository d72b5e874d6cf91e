import { expect } from "chai";
import OpenAI from "openai";
import type { ResponseStreamEvent } from "openai/resources/responses/responses";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { readPlaces } from "../support/secret-scan.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";

const path = "/v1/responses";
const model = "claude-haiku-5-5";
const background = true;
const input = "What does a lease protect?";
const pieces = ["The lease ", "protects ", "a job."];

describe("responses in the background", function () {
  this.timeout(60_000);
  let upstream: FakeProvider;
  let site: ToolServer;
  let test: TestPlatform;
  let client: ApiClient;
  let openai: OpenAI;
  before(async () => {
    upstream = await startFakeProvider();
    site = await startToolServer();
    test = await startPlatform({
      services: "private", // which is read byte by byte
      env: {
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789",
        ANTHROPIC_BASE_URL: upstream.origin,
        FETCH_ALLOW_ORIGINS: site.origin,
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
    openai = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test?.close();
    await upstream.close();
    await site.close();
  });

  const ended = (id: string) =>
    pollUntil(
      async () => {
        const response = await openai.responses.retrieve(id);
        return response.status === "queued" || response.status === "in_progress" ? null : response;
      },
      { timeoutMs: 20_000, what: `the end of ${id}` },
    );
  const recordOf = async (id: string) => test.platform.store.responses.get(await tenantOf(test), id);
  const jobOf = async (id: string) => client.get(`/jobs/${Object(await recordOf(id)).jobId}`);
  const numbersOf = (events: readonly ResponseStreamEvent[]) => events.map(({ sequence_number: number }) => number);
  const typesOf = (events: readonly ResponseStreamEvent[]) =>
    events.map(({ type }) => type.replace("response.", "")).filter((type, n, all) => type !== all[n - 1]);
  /** A model that says one part, and the rest when it is let go. */
  const heldTurn = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    upstream.next({ pieces, until: promise });
    return { letGo: resolve, called: pollUntil(() => upstream.requests.length > 0, { what: "the call of the model" }) };
  };

  it("exist at once, run as a job, and can be polled, as can responses that continue them", async () => {
    const { letGo, called } = heldTurn();
    const queued = await openai.responses.create({ model, input, background, metadata: { run: "7" } });
    expect(queued).to.include({ background: true, store: true, error: null });
    expect(queued.status).to.be.oneOf(["queued", "in_progress"]);
    await called;
    expect((await openai.responses.retrieve(queued.id)).status).to.equal("in_progress");
    const early = await client.post(path, { model, input: "And?", previous_response_id: queued.id });
    expect([early.status, early.at("error.code")]).to.deep.equal([409, "wrong_state"]);
    letGo();
    const response = await ended(queued.id);
    expect(response).to.include({ status: "completed", background: true, output_text: "The lease protects a job." });
    expect(response.metadata).to.deep.equal({ run: "7" });
    expect(response.usage?.total_tokens).to.be.above(0);
    const job = (await jobOf(response.id)).body;
    expect(job).to.deep.include({ kind: "response", status: "completed", title: model, startedBy: "member@test" });
    const next = await openai.responses.create({ model, input: "And?", previous_response_id: response.id });
    expect(next.output_text).to.equal("The lease protects a job.");
    expect(upstream.requests.at(-1)?.body.messages).to.have.lengthOf(3);
    expect((await openai.responses.inputItems.list(response.id)).data).to.have.lengthOf(1);
  });

  it("are seen by the operator's board on a queue of their own", async () => {
    const authorization = `Basic ${Buffer.from("any:operator-token-of-the-tests").toString("base64")}`;
    const board = await fetch(`${test.url}/admin/queues/api/queues`, { headers: { authorization } });
    expect(await board.text()).to.contain('"name":"background-responses"');
  });

  it("stream their events while they are made, and again from any number on", async () => {
    upstream.next({ reasoning: "hm", pieces, toolCalls: [{ id: "call_1", name: "find", arguments: "{}" }] });
    const tools = [{ type: "function" as const, name: "find", parameters: {}, strict: false }];
    const stream = await openai.responses.create({ model, input, tools, background, stream: true });
    const events = await Array.fromAsync(stream);
    expect(numbersOf(events)).to.deep.equal(events.map((_, n) => n));
    expect(typesOf(events).slice(0, 3)).to.deep.equal(["created", "queued", "in_progress"]);
    const last = events.at(-1);
    if (last?.type !== "response.completed") throw new Error(`it ends with ${last?.type}`);
    const { output_text: _text, ...read } = await openai.responses.retrieve(last.response.id);
    expect(read).to.deep.equal(last.response);
    const { id } = read;
    for (const after of [0, 2, 5, events.length - 2, events.length - 1, 500]) {
      const rest = await openai.responses.retrieve(id, { stream: true, starting_after: after });
      expect(await Array.fromAsync(rest), `after ${after}`).to.deep.equal(events.slice(after + 1));
    }
    const whole = await openai.responses.stream({ response_id: id }).finalResponse();
    expect(whole.output_text).to.equal("The lease protects a job.");
  });

  it("are followed by a reader who comes late, while the model is still at work", async () => {
    const { letGo, called } = heldTurn();
    const stream = await openai.responses.create({ model, input, background, stream: true });
    await called;
    const reading = stream[Symbol.asyncIterator]();
    const first = await reading.next();
    await reading.return?.(); // the client leaves; the response goes on
    if (first.done || first.value.type !== "response.created") throw new Error("it does not begin");
    const late = await openai.responses.retrieve(first.value.response.id, { stream: true, starting_after: 0 });
    letGo();
    const events = [first.value, ...(await Array.fromAsync(late))];
    expect(numbersOf(events)).to.deep.equal(events.map((_, n) => n));
    expect(events.at(-1)?.type).to.equal("response.completed");
  });

  it("can be streamed again only if their events are recorded", async () => {
    const plain = await openai.responses.create({ model, input });
    const polled = await openai.responses.create({ model, input, background });
    for (const { id } of [plain, polled]) {
      const refused = await client.get(`${path}/${id}?stream=true`);
      expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "stream"]);
    }
    await ended(polled.id);
  });

  for (const stream of [false, true]) {
    it(`are cancelled while they run${stream ? ", streamed" : ""}, and end once`, async () => {
      const { letGo, called } = heldTurn();
      const { id } = await begin({ stream });
      await called;
      const cancelled = await openai.responses.cancel(id);
      expect(cancelled).to.include({ status: "cancelled", error: null });
      await pollUntil(async () => (await jobOf(id)).at("status") === "cancelled", { what: "the end of the job" });
      letGo();
      expect(await openai.responses.cancel(id), "again").to.deep.equal(cancelled);
      expect((await openai.responses.retrieve(id)).status).to.equal("cancelled");
      if (stream) await expectEnd(id, "cancelled");
    });
  }

  it("are cancelled by their job, too, and others are not", async () => {
    for (const stream of [false, true]) {
      const { letGo, called } = heldTurn();
      const { id } = await begin({ stream });
      await called;
      const { jobId } = Object(await recordOf(id));
      expect((await client.post(`/jobs/${jobId}/cancel`)).status).to.equal(200);
      expect((await ended(id)).status).to.equal("cancelled");
      letGo();
      if (stream) await expectEnd(id, "cancelled");
      upstream.reset();
    }
    const { id } = await begin({ stream: false });
    const foreground = await openai.responses.create({ model, input });
    const refused = await client.post(`${path}/${foreground.id}/cancel`);
    expect([refused.status, refused.at("error.code")]).to.deep.equal([400, "invalid_request"]);
    await ended(id);
  });

  it("fail as their model does, with the failure as last event", async () => {
    for (const stream of [false, true]) {
      upstream.next({ status: 400, errorMessage: "no such thing" });
      const { id } = await begin({ stream });
      const response = await ended(id);
      expect(response.status).to.equal("failed");
      expect(response.error?.code).to.equal("server_error");
      if (stream) await expectEnd(id, "failed");
    }
  });

  it("end incomplete at the limit of tokens", async () => {
    upstream.next({ finishReason: "length" });
    const { id } = await begin({ stream: false });
    const response = await ended(id);
    expect(response).to.deep.include({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
    expect(response.output).to.have.lengthOf(1);
    expect(response.output[0]).to.include({ type: "message", status: "incomplete" });
  });

  it("go on numbering their events when an attempt was cut, so that the official client still gathers them", async () => {
    upstream.next({ pieces, pieceMs: 400, fault: { type: "cut", afterPieces: 2 } }, { pieces });
    const made = await begin({ stream: true });
    const response = await ended(made.id);
    expect(response.output_text).to.equal("The lease protects a job.");
    const replay = await openai.responses.retrieve(made.id, { stream: true });
    const events = await Array.fromAsync(replay);
    expect(numbersOf(events)).to.deep.equal(events.map((_, n) => n));
    expect(typesOf(events).filter((type) => type === "in_progress")).to.have.lengthOf(2);
    const items = events.flatMap((event) => (event.type === "response.output_item.done" ? [event] : []));
    expect(items.map(({ output_index: index, item }) => [index, Object(item).status])).to.deep.equal([
      [0, "incomplete"],
      [1, "completed"],
    ]);
    const gathered = await openai.responses.stream({ response_id: made.id }).finalResponse();
    expect(gathered.output_text).to.equal("The lease protects a job.");
  });

  it("report their end to a callback in OpenAI's form, which its client verifies", async () => {
    const secret = (await makeClient({ url: test.url, key: test.keys.admin }).get("/webhooks/secret")).string("secret");
    site.on("/told", (_, response) => void response.writeHead(204).end());
    const callback = { url: `${site.origin}/told` };
    upstream.next({ finishReason: "length" });
    const { id } = await begin({ stream: false, callback });
    const message = await pollUntil(() => site.requests[0], { timeoutMs: 20_000, what: "the message" });
    const event = await openai.webhooks.unwrap(message.body, message.headers as Record<string, string>, secret);
    expect(event).to.deep.include({ object: "event", type: "response.incomplete", data: { id } });
    expect(event.id).to.match(/^evt_/);
    const forged = openai.webhooks.unwrap(`${message.body} `, message.headers as Record<string, string>, secret);
    expect(await forged.catch((error: unknown) => error)).to.be.instanceOf(OpenAI.InvalidWebhookSignatureError);
    const refused = await client.post(path, { model, input, callback });
    expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "callback"]);
  });

  it("run once for the same idempotency key, and are always stored", async () => {
    const headers = { "idempotency-key": "background-1" };
    const [first, again] = [
      await client.post(path, { model, input, background }, { headers }),
      await client.post(path, { model, input, background }, { headers }),
    ];
    expect(again.at("id")).to.equal(first.at("id"));
    await ended(first.string("id"));
    expect(upstream.requests).to.have.lengthOf(1);
    const refused = await client.post(path, { model, input, background, store: false });
    expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "store"]);
  });

  it("are made by agents and patterns, whose run is one, and not under a regulated profile", async () => {
    const agent = await client.post("/agents", { name: "Clerk", model, systemPrompt: "You answer." });
    const agentId = agent.string("agentId");
    const asked = { model: `agent:${agentId}`, input, background };
    const { events } = await client.events("POST", path, { body: { ...asked, stream: true } });
    const end = Object((await Array.fromAsync(events)).at(-1)?.data);
    expect([end.type, end.response.status]).to.deep.equal(["response.completed", "completed"]);
    const polled = await openai.responses.create(asked);
    expect((await ended(polled.id)).output_text).to.equal("The lease protects a job.");
    expect((await client.get(`/agents/${agentId}/runs`)).at("data")).to.have.lengthOf(2);
    const pattern = await openai.responses.create({ ...asked, model: "composite:chain-of-thought" });
    expect((await ended(pattern.id)).status).to.equal("completed");
    const regulated = { ...asked, model: "composite:chain-of-thought:healthcare" };
    const refused = await client.post(path, regulated);
    expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "background"]);
  });

  it("leave nothing when they are deleted, also while they run", async () => {
    const secret = "Umber lynx 5512";
    upstream.next({ pieces: [secret] });
    const made = await begin({ stream: true });
    await ended(made.id);
    const { letGo, called } = heldTurn();
    const running = await begin({ stream: true, input: `Where is the ${secret}?` });
    await called;
    for (const { id } of [made, running]) {
      await openai.responses.delete(id);
      expect((await client.get(`${path}/${id}`)).status).to.equal(404);
    }
    letGo();
    await pollUntil(async () => (await client.get("/jobs?status=running")).at("data.length") === 0);
    const { responseEvents } = test.platform.store;
    const tenantId = await tenantOf(test);
    for (const { id } of [made, running]) {
      const left = await Array.fromAsync(responseEvents.read(tenantId, id, 0));
      expect(left.map(({ events }) => events).join("")).not.to.contain(secret);
    }
    const inRedis = (await readPlaces(test.platform.config)).filter(({ where }) => where.startsWith("Redis"));
    expect(inRedis.filter(({ text }) => text.includes(secret))).to.deep.equal([]);
  });

  /** Begins a response; its id is known at once, streamed or not. */
  async function begin(body: { stream: boolean; input?: string; callback?: { url: string } }): Promise<{ id: string }> {
    if (!body.stream) {
      const made = await client.post(path, { model, input, background, ...body });
      expect(made.status, made.text).to.equal(200);
      return { id: made.string("id") };
    }
    const { events } = await client.events("POST", path, { body: { model, input, background, ...body } });
    const first = await events.next();
    await events.return(undefined);
    return { id: Object(first.value?.data).response.id };
  }
  async function expectEnd(id: string, status: string): Promise<void> {
    const { events } = await client.events("GET", `${path}/${id}?stream=true`);
    const all = await Array.fromAsync(events);
    expect(all.map(({ data }) => Object(data).sequence_number)).to.deep.equal(all.map((_, n) => n));
    expect(all.at(-1)?.event).to.equal(`response.${status === "cancelled" ? "incomplete" : status}`);
    expect(Object(all.at(-1)?.data).response).to.include({ id, status });
    const gathered = await openai.responses.stream({ response_id: id }).finalResponse();
    expect(gathered.status, "as the official client gathers it").to.equal(status);
  }
});

describe("responses in the background without a worker", () => {
  let test: TestPlatform;
  let client: ApiClient;
  before(async function () {
    this.timeout(60_000);
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test?.close());

  const offline = { model: "switchyard-offline", input, background };

  it("wait, and are cancelled in the queue with all their events", async () => {
    const polled = await client.post(path, offline);
    expect([polled.status, polled.at("status")]).to.deep.equal([200, "queued"]);
    expect((await client.get(`${path}/${polled.string("id")}`)).at("status")).to.equal("queued");
    const { events } = await client.events("POST", path, { body: { ...offline, stream: true } });
    const record = await pollUntil(async () => (await newest()).find(({ _id: id }) => id !== polled.at("id")));
    const cancelled = await client.post(`${path}/${record._id}/cancel`);
    expect([cancelled.status, cancelled.at("status")]).to.deep.equal([200, "cancelled"]);
    const all = await Array.fromAsync(events);
    const types = all.map(({ event }) => event);
    expect(types).to.deep.equal(["response.created", "response.queued", "response.incomplete"]);
    expect((await client.post(`/jobs/${Object(record).jobId}/cancel`)).status, "its job has ended").to.equal(409);
    expect((await client.delete(`${path}/${polled.string("id")}`)).status).to.equal(200);
    expect((await client.get("/jobs?status=queued")).at("data")).to.deep.equal([]);
  });

  it("count as open jobs of their tenant", async () => {
    const before = Number((await client.get("/usage")).at("quotas.openJobs.used"));
    await client.post(path, offline);
    expect((await client.get("/usage")).at("quotas.openJobs.used")).to.equal(before + 1);
  });

  const newest = () => test.platform.store.responses.unfinished({ before: new Date(Date.now() + 60_000), limit: 10 });
});
