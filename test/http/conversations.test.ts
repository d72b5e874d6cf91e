import { expect } from "chai";
import OpenAI from "openai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { loseAnswers } from "../support/lose-answer.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const path = "/v1/conversations";
const model = "small";
const question = "What does a lease protect?";
const answer = "The lease protects a job.";
const message = (content: string) => ({ type: "message" as const, role: "user" as const, content });

describe("conversations of the Responses API", function () {
  this.timeout(60_000);
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let stranger: ApiClient;
  let openai: OpenAI;
  before(async () => {
    upstream = await startFakeProvider();
    test = await startPlatform({
      env: {
        EDGE_BASE_URL: upstream.url,
        EDGE_MODEL: model,
        MAX_JSON_BYTES: "60000",
        MAX_STORED_BYTES: "400000",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
    stranger = makeClient({ url: test.url, key: test.keys.stranger });
    openai = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test?.close();
    await upstream.close();
  });

  const errorOf = ({ status, at }: ApiResponse) => [status, at("error.code"), at("error.param")];
  const sent = () =>
    ((upstream.requests.at(-1)?.body.messages ?? []) as { role: string; content: string }[]).map(
      ({ role, content }) => `${role}: ${content}`,
    );
  const textsOf = async (id: string) =>
    (await Array.fromAsync(openai.conversations.items.list(id, { order: "asc" }))).map((item) =>
      item.type === "message" ? `${item.role}: ${Object(item.content[0]).text}` : item.type,
    );
  const used = async () => (await client.get("/usage")).at("quotas.storedBytes.used") as number;

  it("are made, read, changed and deleted by the official client, with what they take of the quota", async () => {
    const before = await used();
    const made = await openai.conversations.create({ metadata: { topic: "leases" }, items: [message(question)] });
    expect(made).to.deep.include({ object: "conversation", metadata: { topic: "leases" } });
    expect(await openai.conversations.retrieve(made.id)).to.deep.equal(made);
    expect(await openai.conversations.update(made.id, { metadata: { topic: "jobs" } })).to.deep.equal({
      ...made,
      metadata: { topic: "jobs" },
    });
    expect(await used()).to.be.above(before + 500);
    expect(await openai.conversations.delete(made.id)).to.deep.equal({
      id: made.id,
      object: "conversation.deleted",
      deleted: true,
    });
    expect(errorOf(await client.get(`${path}/${made.id}`))).to.deep.equal([404, "not_found", undefined]);
    expect(await used()).to.equal(before);
  });

  it("have what was added once when the store's answer was lost", async () => {
    const before = await used();
    const { id } = await openai.conversations.create();
    const { losses, restore } = loseAnswers("findOneAndUpdate", "conversations", 2);
    let responseId = "";
    try {
      const added = await client.post(`${path}/${id}/items`, { items: [message("one"), message("two")] });
      expect(added.status, added.text).to.equal(200);
      const response = await openai.responses.create({ model, conversation: id, input: question });
      expect(response.conversation).to.deep.equal({ id });
      responseId = response.id;
    } finally {
      restore();
    }
    expect(losses()).to.equal(2);
    expect((await textsOf(id)).slice(0, 3)).to.deep.equal(["user: one", "user: two", `user: ${question}`]);
    expect(await textsOf(id)).to.have.length(4);
    await openai.conversations.delete(id);
    await openai.responses.delete(responseId);
    expect(await used()).to.equal(before);
  });

  it("list their items from both ends in pages, and give and remove single ones", async () => {
    const { id } = await openai.conversations.create();
    const added = await openai.conversations.items.create(id, {
      items: ["one", "two", "three"].map(message),
    });
    expect(added.data.map(({ id: itemId }) => itemId)).to.have.length(new Set(added.data.map((one) => one.id)).size);
    expect(added).to.include({ object: "list", has_more: false, first_id: added.data[0]?.id });
    expect(await textsOf(id)).to.deep.equal(["user: one", "user: two", "user: three"]);
    const newest = await openai.conversations.items.list(id, { limit: 2 });
    expect(newest.data.map(({ id: itemId }) => itemId)).to.deep.equal([added.data[2]?.id, added.data[1]?.id]);
    expect(newest.has_more).to.equal(true);
    const second = added.data[1]?.id ?? "";
    expect(await openai.conversations.items.retrieve(second, { conversation_id: id })).to.deep.equal(added.data[1]);
    expect(await openai.conversations.items.delete(second, { conversation_id: id })).to.include({ id });
    expect(await textsOf(id)).to.deep.equal(["user: one", "user: three"]);
    expect((await client.get(`${path}/${id}/items/${second}`)).status).to.equal(404);
  });

  for (const stream of [false, true])
    it(`are continued by responses that join them${stream ? ", streamed" : ""}`, async () => {
      const { id } = await openai.conversations.create({ items: [message("My name is Ada.")] });
      const ask = async (input: string) => {
        if (!stream) return openai.responses.create({ model, input, conversation: id });
        const events = await Array.fromAsync(
          await openai.responses.create({ model, input, conversation: { id }, stream }),
        );
        const last = events.at(-1);
        if (last?.type !== "response.completed") throw new Error("it did not complete");
        return last.response;
      };
      const response = await ask(question);
      expect(response.conversation).to.deep.equal({ id });
      expect(sent()).to.deep.equal(["user: My name is Ada.", `user: ${question}`]);
      await ask("From what?");
      expect(sent()).to.deep.equal([
        "user: My name is Ada.",
        `user: ${question}`,
        `assistant: ${answer}`,
        "user: From what?",
      ]);
      const items = await Array.fromAsync(openai.conversations.items.list(id, { order: "asc" }));
      expect(items[2]?.id).to.equal(response.output[0]?.id);
      expect(items).to.have.length(5);
      // A response that is continued apart has what stood before it, and what came after does not change it.
      await openai.responses.create({ model, input: "Apart?", previous_response_id: response.id });
      expect(sent().slice(-3)).to.deep.equal([`user: ${question}`, `assistant: ${answer}`, "user: Apart?"]);
      const { id: apart } = await openai.responses.create({
        model,
        input: "Once more?",
        previous_response_id: response.id,
      });
      await openai.responses.create({ model, input: "And again?", previous_response_id: apart });
      expect(sent()).to.have.length(6);
      expect(await textsOf(id)).to.have.length(5);
    });

  it("are joined by a response in the background once", async () => {
    const { id } = await openai.conversations.create({ items: [message("My name is Ada.")] });
    const { id: responseId } = await openai.responses.create({
      model,
      input: question,
      conversation: id,
      background: true,
    });
    await pollUntil(async () => (await openai.responses.retrieve(responseId)).status === "completed", {
      timeoutMs: 20_000,
      what: "the end of the response",
    });
    expect(sent()).to.deep.equal(["user: My name is Ada.", `user: ${question}`]);
    expect(await textsOf(id)).to.deep.equal(["user: My name is Ada.", `user: ${question}`, `assistant: ${answer}`]);
    const record = await test.platform.store.responses.get(await tenantOf(test), responseId);
    expect(record).to.include({ conversationId: id });
  });

  it("keep nothing of a response that failed, and take turns that end at the same time whole", async () => {
    const { id } = await openai.conversations.create();
    upstream.next({ status: 400 });
    expect((await client.post("/v1/responses", { model, input: question, conversation: id })).status).to.equal(400);
    expect(await textsOf(id)).to.deep.equal([]);
    await Promise.all([1, 2, 3, 4].map((n) => openai.responses.create({ model, input: `${n}?`, conversation: id })));
    const texts = await textsOf(id);
    expect(texts).to.have.length(8);
    for (const n of [0, 2, 4, 6]) expect(texts[n + 1]).to.equal(`assistant: ${answer}`);
  });

  it("are those of their tenant alone", async () => {
    const { id } = await openai.conversations.create({ items: [message("Secret.")] });
    const [item] = await Array.fromAsync(openai.conversations.items.list(id));
    for (const calling of [
      stranger.get(`${path}/${id}`),
      stranger.get(`${path}/${id}/items`),
      stranger.get(`${path}/${id}/items/${item?.id}`),
      stranger.post(`${path}/${id}/items`, { items: [message("Mine?")] }),
      stranger.post(`${path}/${id}`, { metadata: {} }),
      stranger.request("DELETE", `${path}/${id}/items/${item?.id}`),
      stranger.request("DELETE", `${path}/${id}`),
    ])
      expect((await calling).status).to.equal(404);
    const joined = await stranger.post("/v1/responses", { model, input: "Hello.", conversation: id });
    expect(errorOf(joined)).to.deep.equal([404, "not_found", "conversation"]);
    expect(await textsOf(id)).to.deep.equal(["user: Secret."]);
  });

  it("refuse what would not be kept, or not be theirs", async () => {
    const { id } = await openai.conversations.create();
    const about = { model, input: question, conversation: id };
    const cases = [
      [{ ...about, store: false }, 400, "store"],
      [{ ...about, previous_response_id: "resp_01ARZ3NDEKTSV4RRFFQ69G5FAV" }, 400, "conversation"],
      [{ ...about, conversation: "conv_01ARZ3NDEKTSV4RRFFQ69G5FAV" }, 404, "conversation"],
      [{ ...about, conversation: { id: "elsewhere" } }, 404, "conversation"],
      [{ ...about, model: "composite:critique:healthcare" }, 400, "conversation"],
      [{ ...about, prompt: { id: "pmpt_1" } }, 400, "prompt"],
      [{ model, input: question, context_management: [{ type: "compaction" }] }, 400, "context_management[0]"],
    ] as const;
    for (const [body, status, param] of cases) {
      const refused = await client.post("/v1/responses", body);
      expect([refused.status, refused.at("error.param")], JSON.stringify(body)).to.deep.equal([status, param]);
    }
    expect(upstream.requests).to.deep.equal([]);
    expect((await client.post("/v1/responses", { model, input: question, context_management: [] })).status).to.equal(
      200,
    );
  });

  it("end at the size of a request, and at the tenant's quota", async () => {
    const { id } = await openai.conversations.create();
    const large = message("x".repeat(25_000));
    for (const _ of [1, 2]) await openai.conversations.items.create(id, { items: [large] });
    expect(errorOf(await client.post(`${path}/${id}/items`, { items: [large] }))).to.deep.equal([
      400,
      "invalid_request",
      "items",
    ]);
    const made: string[] = [];
    let refused: ApiResponse | undefined;
    for (let n = 0; n < 40 && refused === undefined; n += 1) {
      const next = await client.post(path, { items: [large] });
      if (next.status === 200) made.push(next.string("id"));
      else refused = next;
    }
    expect(refused && errorOf(refused)).to.deep.equal([413, "quota_exceeded", undefined]);
    for (const one of made) await openai.conversations.delete(one);
    expect((await client.post(path, { items: [large] })).status).to.equal(200);
  });

  it("name items that cannot be kept, and hold those that they refer to", async () => {
    const first = await openai.responses.create({ model, input: question });
    const made = await client.post(path, {
      items: [
        { type: "item_reference", id: first.output[0]?.id },
        { type: "web_search_call", id: "ws_1" },
      ],
    });
    expect(made.headers.get("x-svc-ignored")).to.equal("items[1]");
    expect(await textsOf(made.string("id"))).to.deep.equal([`assistant: ${answer}`]);
    const missing = await client.post(path, { items: [{ type: "item_reference", id: "msg_1" }] });
    expect(errorOf(missing)).to.deep.equal([404, "not_found", "items[0]"]);
  });

  it("are counted and compacted like any input", async () => {
    const { id } = await openai.conversations.create({ items: [message("My name is Ada.")] });
    const few = await openai.responses.inputTokens.count({ model, input: "Hello." });
    const more = await openai.responses.inputTokens.count({ model, input: "Hello.", conversation: id });
    expect(few.object).to.equal("response.input_tokens");
    expect(more.input_tokens).to.be.above(few.input_tokens + 3);
    expect(upstream.requests).to.deep.equal([]);
    upstream.next({ pieces: ["Her name is Ada."] });
    const compacted = await openai.responses.compact({ model, input: [message(question)], instructions: "Be short." });
    expect(sent().join()).to.include(question).and.to.include("Be short.");
    expect(compacted).to.deep.include({ object: "response.compaction" });
    expect(compacted.output.map(({ type }) => type)).to.deep.equal(["message", "compaction"]);
    expect(compacted.usage.total_tokens).to.be.above(0);
    await openai.responses.create({
      model,
      input: [...(compacted.output as OpenAI.Responses.ResponseInput), message("So?")],
    });
    expect(sent().join()).to.include("Her name is Ada.").and.to.include(question);
  });

  it("are not replaced by a summary that was cut, or made elsewhere", async () => {
    upstream.next({ pieces: ["Her na"], finishReason: "length" });
    const cut = await client.post("/v1/responses/compact", { model, input: question });
    expect([cut.status, cut.at("error.code")]).to.deep.equal([502, "provider_failed"]);
    const foreign = { type: "compaction", encrypted_content: "gAAAAB" };
    const refused = await client.post("/v1/responses", { model, input: [foreign, message(question)] });
    expect(errorOf(refused)).to.deep.equal([400, "invalid_request", "input[0].encrypted_content"]);
  });
});
