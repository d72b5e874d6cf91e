import { expect } from "chai";
import OpenAI, { toFile } from "openai";
import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses";
import { makeSizedPdf } from "../support/documents.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const pump = "The pump P-100 is bled in spring by its upper valve.";
const crane = "The crane C-7 lifts nine tons on its steel rope.";
const input = "When is the pump P-100 bled?";
const models = { edge: "small", openai: "gpt-6-luna", anthropic: "claude-haiku-5-5" } as const;
type Kind = keyof typeof models;
const kinds = Object.keys(models) as Kind[];
const search = (query: string, id = "call_1") => ({ id, name: "file_search", arguments: JSON.stringify({ query }) });
const weather = { type: "function" as const, name: "weather", parameters: { type: "object" }, strict: false };
type Citation = {
  type: string;
  file_id: string;
  filename: string;
  index: number;
  document_id: string;
  chunk_id: string;
};

/** What an output cites. */
const citationsOf = ({ output }: Pick<Response, "output">) =>
  output.flatMap((item) =>
    item.type === "message"
      ? item.content.flatMap((part) => (part.type === "output_text" ? (part.annotations as unknown as Citation[]) : []))
      : [],
  );
/** A citation names a file of the store, and a chunk that can be read. */
async function expectReal(
  { openai, api }: { openai: OpenAI; api: ApiClient },
  { document_id, chunk_id, file_id, ...citation }: Citation,
  text: string,
) {
  expect(citation).to.include({ type: "file_citation" });
  const { data } = (await api.get(`/rag/documents/${document_id}/chunks`)).body as {
    data: { chunkId: string; content: string }[];
  };
  expect(data.find(({ chunkId }) => chunkId === chunk_id)?.content).to.equal(text);
  expect((await openai.files.retrieve(file_id)).filename).to.equal(citation.filename);
}

describe("file_search of the official openai client", function () {
  this.timeout(60_000);
  let upstreams: Record<Kind, FakeProvider>;
  let test: TestPlatform;
  let openai: OpenAI;
  let api: ApiClient;
  let store: string;
  let files: { pump: string; crane: string };
  before(async () => {
    upstreams = {
      edge: await startFakeProvider(),
      openai: await startFakeProvider(),
      anthropic: await startFakeProvider(),
    };
    test = await startPlatform({
      env: {
        EDGE_BASE_URL: upstreams.edge.url,
        EDGE_MODEL: models.edge,
        OPENAI_API_KEY: "sk-platform-openai-0123456789",
        OPENAI_BASE_URL: upstreams.openai.url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789",
        ANTHROPIC_BASE_URL: upstreams.anthropic.origin,
      },
    });
    openai = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
    api = makeClient({ url: test.url, key: test.keys.owner });
    ({ id: store } = await openai.vectorStores.create({ name: "Manuals" }));
    const add = async (name: string, text: string) => {
      const file = await toFile(Buffer.from(text), `${name}.txt`);
      const { id } = await openai.files.create({ file, purpose: "assistants" });
      const body = { file_id: id, attributes: { kind: name } };
      await openai.vectorStores.files.createAndPoll(store, body, { pollIntervalMs: 20 });
      return id;
    };
    files = { pump: await add("pump", pump), crane: await add("crane", crane) };
  });
  beforeEach(() => {
    for (const kind of kinds) upstreams[kind].reset();
  });
  after(async () => {
    await test?.close();
    for (const kind of kinds) await upstreams[kind].close();
  });

  const tools = (more: object = {}) => [{ type: "file_search" as const, vector_store_ids: [store], ...more }];
  const script = (kind: Kind) =>
    upstreams[kind].next({ toolCalls: [search("pump bled spring")] }, { pieces: ["In ", "spring ", "【1", "】", "."] });
  const typesOf = (events: readonly ResponseStreamEvent[]) => events.map(({ type }) => type.replace("response.", ""));

  for (const kind of kinds) {
    const model = models[kind];
    it(`searches for ${model}, whose provider gets functions and texts alone, and cites what it found`, async () => {
      script(kind);
      const include = ["file_search_call.results" as const];
      const response = await openai.responses.create({ model, input, tools: tools(), include });
      const [call, message] = response.output;
      if (call?.type !== "file_search_call" || message?.type !== "message") throw new Error("it searches nothing");
      expect(call).to.deep.include({ status: "completed", queries: ["pump bled spring"] });
      expect(call.results?.[0]).to.deep.include({ file_id: files.pump, filename: "pump.txt", text: pump, quote: pump });
      expect(response.output_text).to.equal("In spring.");
      const [citation, ...others] = citationsOf(response);
      if (!citation) throw new Error("it cites nothing");
      expect(others).to.deep.equal([]);
      expect(citation).to.include({
        file_id: files.pump,
        filename: "pump.txt",
        index: "In spring".length,
        quote: pump,
      });
      await expectReal({ openai, api }, citation, pump);
      const { requests } = upstreams[kind];
      expect(requests).to.have.length(2);
      const sent = JSON.stringify(requests.map(({ body }) => body));
      expect(sent).to.not.include(store).and.not.include("vector_store").and.not.include(files.pump);
      expect(JSON.stringify(requests[1]?.body)).to.include(pump);
      expect(response.usage?.input_tokens, "of both calls").to.equal(22);
      expect((await openai.responses.retrieve(response.id)).output, "without what it does not ask for").to.deep.equal([
        { ...call, results: null },
        message,
      ]);
      const again = await openai.responses.retrieve(response.id, { include });
      expect(again.output).to.deep.equal(response.output);
      const key = (await api.post("/keys", { collections: [store] })).string("key");
      const limited = makeClient({ url: test.url, key });
      const path = `/v1/responses/${response.id}?include=${include[0]}`;
      expect((await limited.get(path)).status, "by another key, which is limited").to.equal(404);
      upstreams[kind].next({ pieces: ["As said."] });
      await openai.responses.create({ model, input: "And?", previous_response_id: response.id });
      expect(JSON.stringify(upstreams[kind].requests.at(-1)?.body)).to.include("In spring.");
    });

    it(`streams the events of a search for ${model}, in order`, async () => {
      script(kind);
      const stream = await openai.responses.create({ model, input, tools: tools(), stream: true, store: false });
      const events = await Array.fromAsync(stream);
      expect(events.map(({ sequence_number: number }) => number)).to.deep.equal(events.map((_, n) => n));
      const types = typesOf(events).filter((type) => type !== "output_text.delta");
      expect(types).to.deep.equal([
        "created",
        "in_progress",
        "output_item.added",
        "file_search_call.in_progress",
        "file_search_call.searching",
        "file_search_call.completed",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.annotation.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
      ]);
      const text = events.flatMap((event) => (event.type === "response.output_text.delta" ? [event.delta] : []));
      expect(text.join("")).to.equal("In spring.");
      const last = events.at(-1);
      if (last?.type !== "response.completed") throw new Error(`it ends with ${last?.type}`);
      expect(citationsOf(last.response)).to.have.length(1);
      const added = events.find(({ type }) => type === "response.output_text.annotation.added");
      expect(Object(added).annotation).to.deep.equal(citationsOf(last.response)[0]);
    });
  }

  it("names page and headings of what it has found and cites, also in a stream", async () => {
    const body: [string, number] = ["The winch is greased once a month at both bearings, with the rope slack.", 10];
    const pages = [
      [["Winch W-2", 22] as [string, number], ["An introduction to it.", 10] as [string, number]],
      [["Greasing", 16] as [string, number], body],
    ];
    const file = await toFile(await makeSizedPdf(pages), "winch.pdf");
    const { id } = await openai.files.create({ file, purpose: "assistants" });
    await openai.vectorStores.files.createAndPoll(store, { file_id: id }, { pollIntervalMs: 20 });
    const place = { page: 2, heading: "Winch W-2 > Greasing", quote: `Greasing ${body[0]}` };
    const asked = { model: models.edge, input: "How often is the winch greased?", tools: tools() };
    const answers = [{ toolCalls: [search("winch greased")] }, { pieces: ["Once a month【1】."] }];
    upstreams.edge.next(...answers, ...answers);
    const response = await openai.responses.create({ ...asked, include: ["file_search_call.results"] });
    const [call] = response.output;
    expect(Object(call).results[0]).to.deep.include({ ...place, file_id: id });
    expect(citationsOf(response)[0]).to.deep.include({ ...place, file_id: id, filename: "winch.pdf" });
    const events = await Array.fromAsync(await openai.responses.create({ ...asked, stream: true }));
    const added = events.find(({ type }) => type === "response.output_text.annotation.added");
    expect(Object(added).annotation).to.deep.include(place);
    await openai.vectorStores.files.delete(id, { vector_store_id: store });
  });

  it("finds only what filters, the number of results and the threshold let through", async () => {
    const model = models.edge;
    const found = async (more: object) => {
      upstreams.edge.next({ toolCalls: [search("pump crane rope valve")] }, {});
      const include = ["file_search_call.results" as const];
      const { output } = await openai.responses.create({ model, input, tools: tools(more), include });
      const [call] = output;
      return call?.type === "file_search_call" ? call.results?.map(({ filename }) => filename).sort() : undefined;
    };
    expect(await found({})).to.deep.equal(["crane.txt", "pump.txt"]);
    expect(await found({ filters: { type: "eq", key: "kind", value: "crane" } })).to.deep.equal(["crane.txt"]);
    expect(await found({ max_num_results: 1 })).to.have.length(1);
    expect(await found({ ranking_options: { score_threshold: 1 } })).to.deep.equal([]);
    for (const [more, param] of [
      [{ max_num_results: 51 }, /^tools\[0\]/],
      [{ vector_store_ids: [] }, /^tools\[0\]/],
      [{ filters: { type: "like", key: "a", value: "b" } }, /^tools\[0\]/],
    ] as const) {
      const refused = await api.post("/v1/responses", { model, input, tools: tools(more) });
      expect(refused.status, refused.text).to.equal(400);
      expect(refused.string("error.param")).to.match(param);
    }
    for (const two of [
      [...tools(), ...tools()],
      [...tools(), { ...weather, name: "file_search" }],
    ]) {
      const refused = await api.post("/v1/responses", { model, input, tools: two });
      expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "tools[1]"]);
    }
  });

  it("goes with functions: the client's calls come first, and a demanded search is demanded once", async () => {
    const model = models.edge;
    upstreams.edge.next(
      { toolCalls: [search("pump"), { id: "call_2", name: "weather", arguments: "{}" }] },
      { toolCalls: [search("pump")] },
      { pieces: ["In spring【1】【9】."] },
    );
    const first = await openai.responses.create({
      model,
      input,
      tools: [...tools(), weather],
      tool_choice: "required",
    });
    expect(first.output.map(({ type }) => type)).to.deep.equal(["function_call"]);
    const output = [{ type: "function_call_output" as const, call_id: "call_2", output: "rain" }];
    const second = await openai.responses.create({
      model,
      input: output,
      previous_response_id: first.id,
      tools: [...tools(), weather],
      tool_choice: { type: "file_search" },
    });
    expect(second.output_text, "a mark of no passage stays").to.equal("In spring【9】.");
    expect(citationsOf(second)).to.have.length(1);
    const choices = upstreams.edge.requests.map(({ body }) => body.tool_choice);
    expect(choices).to.deep.equal(["required", { type: "function", function: { name: "file_search" } }, "auto"]);
  });

  it("ends after a bounded number of searches", async () => {
    upstreams.edge.setDefault({ toolCalls: Array.from({ length: 6 }, (_, n) => search("pump", `call_${n}`)) });
    const response = await openai.responses.create({ model: models.edge, input, tools: tools() });
    expect(response.status).to.equal("completed");
    expect(upstreams.edge.requests.length).to.equal(7);
    expect(upstreams.edge.requests.at(-1)?.body.tool_choice).to.equal("none");
    const statuses = response.output.map((item) => (item.type === "file_search_call" ? item.status : item.type));
    expect(statuses.slice(0, 6), "four at once").to.deep.equal([...Array(4).fill("completed"), "failed", "failed"]);
  });

  it("is refused for stores of others: 404 for another tenant's, by name for a limited key", async () => {
    const model = models.edge;
    const body = { model, input, tools: tools() };
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    for (const more of [{}, { stream: true }, { background: true }]) {
      const refused = await stranger.post("/v1/responses", { ...body, ...more });
      expect([refused.status, refused.at("error.param")]).to.deep.equal([404, "tools[0].vector_store_ids"]);
    }
    const key = (await api.post("/keys", { collections: ["open"] })).string("key");
    const refused = await makeClient({ url: test.url, key }).post("/v1/responses", body);
    expect(refused.status).to.equal(403);
    expect(refused.string("error.message")).to.include(store);
    expect(upstreams.edge.requests).to.deep.equal([]);
  });

  it("counts each call of a model", async () => {
    script("openai");
    const surface = "counted"; // the calls of other tests may still be on their way to the ledger
    const headers = { "x-svc-surface": surface };
    const body = { model: models.openai, input, tools: tools() };
    const response = await openai.responses.create(body, { headers });
    expect(Object(response).costUsd).to.be.above(0);
    await pollUntil(async () => {
      const rows = (await api.get("/usage?groupBy=surface")).at("data") as { surface: string; requests: number }[];
      return rows.find((row) => row.surface === surface)?.requests === 2;
    });
  });

  for (const stream of [false, true]) {
    it(`is made in the background, and does not pay twice after a cut${stream ? ", streamed" : ""}`, async () => {
      const model = models.anthropic;
      let searches = 0;
      const { vectorStores } = test.platform;
      const { search: given } = vectorStores;
      vectorStores.search = (...asked) => {
        searches += 1;
        return given(...asked);
      };
      upstreams.anthropic.next(
        { toolCalls: [search("pump bled spring")] },
        { status: 529, errorCode: "overloaded_error" },
        { status: 529, errorCode: "overloaded_error" },
        { status: 529, errorCode: "overloaded_error" },
      );
      upstreams.anthropic.setDefault({ pieces: ["In spring【1】."] });
      const body = { model, input, tools: tools(), background: true };
      const id = stream
        ? (await openai.responses.stream({ ...body }).finalResponse()).id
        : (await openai.responses.create(body)).id;
      const response = await pollUntil(
        async () => {
          const read = await openai.responses.retrieve(id);
          return read.status === "queued" || read.status === "in_progress" ? null : read;
        },
        { timeoutMs: 40_000, what: "its end" },
      );
      vectorStores.search = given;
      expect(response.status, JSON.stringify(response.error)).to.equal("completed");
      expect(response.output.map(({ type }) => type)).to.deep.equal(["file_search_call", "message"]);
      expect(citationsOf(response)).to.have.length(1);
      expect(searches, "it has searched once").to.equal(1);
      const first = upstreams.anthropic.requests.filter(({ body }) => !JSON.stringify(body).includes("tool_result"));
      expect(first, "and asked once for the first turn").to.have.length(1);
    });
  }
});

describe("file_search with the offline model", () => {
  let test: TestPlatform;
  let openai: OpenAI;
  let store: string;
  before(async () => {
    test = await startPlatform();
    openai = new OpenAI({ apiKey: test.keys.member, baseURL: `${test.url}/v1`, maxRetries: 0 });
    ({ id: store } = await openai.vectorStores.create({}));
    for (const [name, text] of Object.entries({ pump, crane })) {
      const file = await toFile(Buffer.from(text), `${name}.txt`);
      await openai.vectorStores.files.uploadAndPoll(store, file, { pollIntervalMs: 20 });
    }
  });
  after(() => test.close());

  for (const stream of [false, true]) {
    it(`searches and cites${stream ? ", in a stream" : ""}`, async () => {
      const body = { model: "meta-llm", input, tools: [{ type: "file_search" as const, vector_store_ids: [store] }] };
      const response = stream
        ? await openai.responses.stream(body).finalResponse()
        : await openai.responses.create(body);
      expect(response.output.map(({ type }) => type)).to.deep.equal(["file_search_call", "message"]);
      expect(response.output_text).to.include(pump).and.not.include("【");
      const [citation] = citationsOf(response);
      if (!citation) throw new Error("it cites nothing");
      expect(citation).to.include({ filename: "pump.txt", index: response.output_text.indexOf(pump) + pump.length });
      await expectReal({ openai, api: makeClient({ url: test.url, key: test.keys.owner }) }, citation, pump);
    });
  }
});
