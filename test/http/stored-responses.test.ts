import { expect } from "chai";
import OpenAI from "openai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { readPlaces } from "../support/secret-scan.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const path = "/v1/responses";
const models = { anthropic: "claude-haiku-5-5", edge: "small" };
const model = models.anthropic;
const include = ["reasoning.encrypted_content"];
const tools = [{ type: "function", name: "find", parameters: { type: "object" } }];
const call = { id: "toolu_1", name: "find", arguments: '{"q":"lease"}' };
const turn = { reasoning: "It is asked for a lease.", pieces: ["I look ", "it up."], toolCalls: [call] };
type Sent = { role: string; content: string | { type: string; text?: string }[] };
type Item = { type: string; id: string; encrypted_content?: string };

describe("stored responses", () => {
  let upstreams: { anthropic: FakeProvider; edge: FakeProvider };
  let test: TestPlatform;
  let client: ApiClient;
  let stranger: ApiClient;
  let openai: OpenAI;
  before(async function () {
    this.timeout(60_000);
    upstreams = { anthropic: await startFakeProvider(), edge: await startFakeProvider() };
    test = await startPlatform({
      services: "private", // which is read byte by byte
      workers: false,
      env: {
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789",
        ANTHROPIC_BASE_URL: upstreams.anthropic.origin,
        EDGE_BASE_URL: upstreams.edge.url,
        EDGE_MODEL: models.edge,
        MAX_JSON_BYTES: "60000",
        MAX_STORED_BYTES: "2000000",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
    stranger = makeClient({ url: test.url, key: test.keys.stranger });
    openai = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
  });
  beforeEach(() => {
    upstreams.anthropic.reset();
    upstreams.edge.reset();
  });
  after(async () => {
    await test?.close();
    await upstreams.anthropic.close();
    await upstreams.edge.close();
  });

  const create = async (body: object) => {
    const response = await client.post(path, { model, ...body });
    expect(response.status, response.text).to.equal(200);
    return response;
  };
  const errorOf = ({ status, at }: ApiResponse) => [status, at("error.code"), at("error.param")];
  /** The messages of the last request to a provider: the roles, and the types of their parts, or their texts. */
  const sentTo = (kind: "anthropic" | "edge") => {
    const messages = (upstreams[kind].requests.at(-1)?.body.messages ?? []) as Sent[];
    return messages.map(({ role, content }) => {
      if (typeof content === "string") return [role, content];
      const [part, ...others] = content;
      return [role, others.length === 0 && part?.text ? part.text : content.map(({ type }) => type).join()];
    });
  };

  it("are read as their caller got them, JSON or stream, by the official client", async () => {
    const made = await openai.responses.create({ model, input: "What does a lease protect?", metadata: { run: "7" } });
    expect(made).to.include({ store: true, status: "completed", previous_response_id: null });
    expect(await openai.responses.retrieve(made.id)).to.deep.equal(made);
    const stream = await openai.responses.create({ model, input: "Again?", stream: true });
    const events = await Array.fromAsync(stream);
    const last = events.at(-1);
    if (last?.type !== "response.completed") throw new Error("it did not complete");
    const { output_text: _text, ...read } = await openai.responses.retrieve(last.response.id);
    expect(read).to.deep.equal(last.response);
  });

  it("reach their caller with the names of ignored fields, and again byte for byte by their idempotency key", async () => {
    const headers = { "x-svc-debug": "true", "idempotency-key": "stored-1" };
    const ask = () => client.post(path, { model, input: "Hello.", unknown: 1 }, { headers });
    const made = await ask();
    expect(made.at("_ignored")).to.deep.equal(["unknown"]);
    const { _ignored, ...read } = made.body as Record<string, unknown>;
    expect((await client.get(`${path}/${made.string("id")}`)).body).to.deep.equal(read);
    expect((await ask()).text).to.equal(made.text);
    const plain = () => client.post(path, { model, input: "Hello." }, { headers: { "idempotency-key": "stored-2" } });
    expect((await plain()).text).to.equal((await plain()).text);
  });

  it("count as an item of their conversation even without items, and with the ids of those before them", async () => {
    const tenantId = await tenantOf(test);
    const { store } = test.platform;
    const empty = () => ({ pieces: [], toolCalls: [] });
    upstreams.edge.next(empty());
    let last = (await create({ model: models.edge, input: "" })).string("id");
    const used = async () => Number((await client.get("/usage")).at("quotas.storedBytes.used"));
    const steps: number[] = [];
    for (let n = 2; n <= 4; n += 1) {
      upstreams.edge.next(empty());
      const before = await used();
      last = (await create({ model: models.edge, input: "", previous_response_id: last })).string("id");
      steps.push((await used()) - before);
      expect((await store.responses.about(tenantId, last))?.total.items).to.be.at.least(n);
    }
    expect((steps[2] ?? 0) - (steps[1] ?? 0)).to.be.at.least(48);
  });

  it("keep reasoning for their conversation, and show it to those who ask", async () => {
    upstreams.anthropic.next(turn);
    const made = await create({ input: "Hello.", tools });
    const [thought] = made.at("output") as Item[];
    expect(thought).to.include({ type: "reasoning" }).and.not.have.property("encrypted_content");
    const id = made.string("id");
    expect((await client.get(`${path}/${id}`)).body).to.deep.equal(made.body);
    for (const name of ["include", "include[]"]) {
      const shown = await client.get(`${path}/${id}?${encodeURIComponent(name)}=${include[0]}`);
      expect(shown.string("output[0].encrypted_content")).to.match(/^svc1\./);
    }
    const answer = { type: "function_call_output", call_id: call.id, output: "Found." };
    const next = await create({ input: [answer], tools, previous_response_id: id });
    expect(next.at("previous_response_id")).to.equal(id);
    const turns = [
      ["user", "Hello."],
      ["assistant", "thinking,text,tool_use"],
      ["user", "tool_result"],
    ];
    expect(sentTo("anthropic")).to.deep.equal(turns);
  });

  it("are continued over several turns, by models of different providers, and without earlier instructions", async () => {
    upstreams.anthropic.next({ reasoning: "hm", pieces: ["One."] });
    const first = await create({ input: "1?", instructions: "Count." });
    const second = await create({ model: models.edge, input: "2?", previous_response_id: first.string("id") });
    await create({ input: "3?", previous_response_id: second.string("id"), store: false });
    expect(sentTo("anthropic")).to.deep.equal([
      ["user", "1?"],
      ["assistant", "thinking,text"],
      ["user", "2?"],
      ["assistant", "The lease protects a job."],
      ["user", "3?"],
    ]);
    expect(sentTo("edge")).to.deep.equal([
      ["user", "1?"],
      ["assistant", "One."],
      ["user", "2?"],
    ]);
    expect(JSON.stringify(upstreams.anthropic.requests.at(-1)?.body)).not.to.contain("Count.");
  });

  it("give items to requests that refer to them, of outputs and of inputs", async () => {
    upstreams.anthropic.next(turn);
    const made = await create({ input: [{ role: "user", content: "Where is it?" }], tools });
    const listed = await client.get(`${path}/${made.string("id")}/input_items`);
    const ids = [listed.string("data[0].id"), ...(made.at("output") as Item[]).map(({ id }) => id)];
    const answer = { type: "function_call_output", call_id: call.id, output: "Found." };
    const types = [{}, { type: null }, { type: "item_reference" }]; // a client may leave the type out
    const references = ids.map((id, n) => ({ ...types[n % types.length], id }));
    const next = await create({ input: [...references, answer], tools });
    const [user, assistant] = sentTo("anthropic");
    expect(user).to.deep.equal(["user", "Where is it?"]);
    expect(assistant).to.deep.equal(["assistant", "thinking,text,tool_use"]);
    const items = await openai.responses.inputItems.list(next.string("id"), { order: "asc" });
    const kept = ["message", "reasoning", "message", "function_call", "function_call_output"];
    expect(items.data.map(({ type }) => type)).to.deep.equal(kept);
  });

  it("list the items of their own input, page by page, in both orders", async () => {
    const input = ["a", "b", "c", "d", "e"].map((content) => ({ role: "user" as const, content }));
    const made = await create({ input });
    const textsOf = async (order: "asc" | "desc") => {
      const texts: unknown[] = [];
      for await (const item of openai.responses.inputItems.list(made.string("id"), { order, limit: 2 }))
        texts.push(Object(item).content[0]);
      return texts.map((part) => Object(part).text);
    };
    expect(await textsOf("asc")).to.deep.equal(["a", "b", "c", "d", "e"]);
    expect(await textsOf("desc")).to.deep.equal(["e", "d", "c", "b", "a"]);
    const page = await client.get(`${path}/${made.string("id")}/input_items?limit=4`);
    expect(page.at("has_more")).to.equal(true);
    expect(page.at("first_id")).to.equal(page.at("data[0].id"));
    const none = await client.get(`${path}/${made.string("id")}/input_items?after=msg_none`);
    expect(none.body).to.deep.equal({ object: "list", data: [], first_id: null, last_id: null, has_more: false });
  });

  it("are each found and counted when many come at once", async () => {
    const usedBytes = async () => Number((await client.get("/usage")).at("quotas.storedBytes.used"));
    const before = await usedBytes();
    const made = await Promise.all(
      Array.from({ length: 24 }, (_, n) => create({ model: models.edge, input: `Call ${n}.` })),
    );
    const added = (await usedBytes()) - before;
    const counted = await Promise.all(
      made.map(async ({ body, string }, n) => {
        const id = string("id");
        expect((await client.get(`${path}/${id}`)).body).to.deep.equal(body);
        expect((await client.get(`${path}/${id}/input_items`)).string("data[0].content[0].text")).to.equal(
          `Call ${n}.`,
        );
        const { bytes } =
          (await test.platform.store.responses.get(await tenantOf(test), id)) ?? expect.fail("no record");
        return 512 + bytes.response + bytes.output + bytes.input;
      }),
    );
    expect(added).to.equal(counted.reduce((sum, bytes) => sum + bytes, 0));
  });

  it("are their tenant's alone", async () => {
    const made = await create({ input: "Mine." });
    const id = made.string("id");
    const item = made.string("output[0].id");
    const missing = [404, "not_found"];
    for (const address of [`${path}/${id}`, `${path}/${id}/input_items`])
      expect(errorOf(await stranger.get(address)).slice(0, 2)).to.deep.equal(missing);
    expect(errorOf(await stranger.delete(`${path}/${id}`)).slice(0, 2)).to.deep.equal(missing);
    const ask = (body: object) => stranger.post(path, { model: models.edge, ...body });
    const continued = await ask({ input: "Go on.", previous_response_id: id });
    expect(errorOf(continued)).to.deep.equal([...missing, "previous_response_id"]);
    const referring = await ask({ input: [{ type: "item_reference", id: item }] });
    expect(errorOf(referring)).to.deep.equal([...missing, "input[0]"]);
    expect((await client.get(`${path}/${id}`)).status).to.equal(200);
  });

  it("are deleted with their bytes, and what continues them cannot go on", async () => {
    const usedBytes = async () => Number((await client.get("/usage")).at("quotas.storedBytes.used"));
    const before = await usedBytes();
    const first = await create({ input: "1?" });
    const second = await create({ input: "2?", previous_response_id: first.string("id") });
    expect(await usedBytes()).to.be.above(before + 1_000);
    expect(await openai.responses.delete(first.string("id"))).to.deep.include({ deleted: true, object: "response" });
    expect((await client.get(`${path}/${first.string("id")}`)).status).to.equal(404);
    expect((await client.get(`${path}/${second.string("id")}`)).status).to.equal(200);
    const continued = await client.post(path, { model, input: "3?", previous_response_id: second.string("id") });
    expect(errorOf(continued)).to.deep.equal([404, "not_found", "previous_response_id"]);
    expect(continued.string("error.message")).to.contain(first.string("id"));
    await client.delete(`${path}/${second.string("id")}`);
    expect(await usedBytes()).to.equal(before);
  });

  it("bound a conversation by bytes, items and pictures, as a request that sends it itself", async () => {
    const made = await create({ input: "x".repeat(40_000) });
    const previous_response_id = made.string("id");
    const longer = await create({ input: "y".repeat(19_900), previous_response_id });
    const ask = (body: object) => client.post(path, { model, input: "z", ...body });
    const tooLong = [400, "invalid_request", "previous_response_id"];
    expect(errorOf(await ask({ previous_response_id: longer.string("id") }))).to.deep.equal(tooLong);
    const id = made.string("output[0].id");
    const references = Array(700).fill({ type: "item_reference", id });
    expect(errorOf(await ask({ input: references }))).to.deep.equal([400, "invalid_request", "input"]);
    const user = { role: "user", content: "." };
    const many = await create({ input: Array(1_000).fill(user) });
    const more = { input: Array(1_000).fill(user), previous_response_id: many.string("id") };
    expect(errorOf(await ask(more))).to.deep.equal(tooLong);
    const image = { type: "input_image", image_url: "https://pictures.example/quay.png" };
    const pictures = await create({ input: [{ role: "user", content: Array(60).fill(image) }] });
    const morePictures = { input: [{ role: "user", content: Array(60).fill(image) }] };
    const asked = await ask({ ...morePictures, previous_response_id: pictures.string("id") });
    expect(errorOf(asked)).to.deep.equal(tooLong);
  });

  it("are refused before a model is called when the tenant stores too much", async () => {
    const tenantId = await tenantOf(test);
    const { store: stored, quotas } = test.platform;
    const { use } = stored;
    const { used, limit } = (await quotas.usage(tenantId)).storedBytes;
    await quotas.check(tenantId, "storedBytes", limit - used); // so that the next one counts again
    await use.add({ tenantId, kind: "sources", bytes: 2_000_000 });
    try {
      const calls = upstreams.anthropic.requests.length;
      const refused = await client.post(path, { model, input: "x".repeat(50_000) });
      expect(errorOf(refused).slice(0, 2)).to.deep.equal([413, "quota_exceeded"]);
      expect(upstreams.anthropic.requests).to.have.lengthOf(calls);
      expect((await client.post(path, { model, input: "One more.", store: false })).status).to.equal(200);
    } finally {
      await use.add({ tenantId, kind: "sources", bytes: -2_000_000 });
    }
  });

  it("expire when the operator says", async () => {
    const made = await create({ input: "Hello." });
    const record = await test.platform.store.responses.get(await tenantOf(test), made.string("id"));
    const { createdAt, expireAt } = record ?? expect.fail("it is not there");
    expect(expireAt.getTime() - createdAt.getTime()).to.equal(30 * 86_400_000);
  });

  it("do not exist with store: false, and nothing of it is in the store or in Redis", async () => {
    const secrets = { input: "Amber walrus 4417", output: "Cobalt heron 9923", streamed: "Umber lynx 5512" };
    upstreams.anthropic.next({ pieces: [secrets.output] }, { pieces: [secrets.streamed] });
    const body = { input: secrets.input, store: false, temperature: 0 };
    const made = await create(body);
    expect(made.at("store")).to.equal(false);
    const { events } = await client.events("POST", path, { body: { model, ...body, stream: true } });
    const { response } = Object((await Array.fromAsync(events)).at(-1)?.data);
    for (const id of [made.string("id"), response.id])
      expect(errorOf(await client.get(`${path}/${id}`)).slice(0, 2)).to.deep.equal([404, "not_found"]);
    expect((await client.get(`/ai/logs/${made.string("logId")}`)).status).to.equal(200);
    await test.platform.gateway.flush();
    const kept = await create({ input: "Saffron otter 3310" });
    expect(kept.at("store")).to.equal(true);
    const places = await readPlaces(test.platform.config);
    const find = (text: string) => places.filter((place) => place.text.includes(text)).map(({ where }) => where);
    expect(find("Saffron otter 3310"), "the scan finds what is stored").not.to.deep.equal([]);
    for (const secret of Object.values(secrets)) expect(find(secret)).to.deep.equal([]);
  });
});
