import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const path = "/v1/responses";
const model = "claude-haiku-5-5";
const input = "What does a lease protect?";
const include = ["reasoning.encrypted_content"];
const tools = [{ type: "function", name: "find", parameters: { type: "object" } }];
const calls = [
  { id: "toolu_1", name: "find", arguments: '{"q":"lease"}' },
  { id: "toolu_2", name: "find", arguments: "{}" },
];

/** The client holds every body and every event against the schemas of the documentation. */
describe("POST /v1/responses", () => {
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  before(async function () {
    this.timeout(60_000);
    upstream = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: { ANTHROPIC_API_KEY: "sk-ant-platform-0123456789", ANTHROPIC_BASE_URL: upstream.origin },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const turn = { reasoning: "It is asked for a lease.", pieces: ["I look ", "it up."], toolCalls: calls };

  it("gives the items of a turn in their order, the same as JSON and as a stream", async () => {
    upstream.next(turn, turn);
    const response = await client.post(path, { model, input, tools, include, store: false });
    expect([response.status, response.at("status")]).to.deep.equal([200, "completed"]);
    const body = { model, input, tools, include, store: false, stream: true };
    const events = await Array.fromAsync((await client.events("POST", path, { body })).events);
    for (const { event, data } of events) expect(data).to.include({ type: event });
    const ends = events.filter(({ event }) => event === "response.output_item.done").map(({ data }) => data);
    const items = ends.map((data) => Object(data).item);
    expect(items.map(({ type }) => type)).to.deep.equal(["reasoning", "message", "function_call", "function_call"]);
    const withoutIds = (all: object[]) => all.map((item) => ({ ...item, id: undefined }));
    expect(withoutIds(items)).to.deep.equal(withoutIds(response.at("output") as object[])); // the client checked the shape
    expect(new Set(items.map(({ id }) => id)).size).to.equal(4);
    expect(Object(events.at(-1)?.data).response.output).to.deep.equal(items);
  });

  it("joins what an assistant thought, said and called between two others into one turn", async () => {
    upstream.next(turn);
    const asked = await client.post(path, { model, input, tools, include, store: false });
    const output = asked.at("output") as object[]; // likewise
    const results = calls.map(({ id }) => ({ type: "function_call_output", call_id: id, output: `found by ${id}` }));
    const items = [{ role: "user", content: input }, ...output, ...results];
    expect((await client.post(path, { model, input: items, tools, store: false })).status).to.equal(200);
    const [, assistant, user] = (upstream.requests.at(-1)?.body.messages ?? []) as { content: { type: string }[] }[];
    expect(assistant?.content.map(({ type }) => type)).to.deep.equal(["thinking", "text", "tool_use", "tool_use"]);
    expect(user?.content.map(({ type }) => type)).to.deep.equal(["tool_result", "tool_result"]);
  });

  it("leaves out reasoning that has nothing to go back, or that nothing follows", async () => {
    const summary = [{ type: "summary_text", text: "hm" }];
    const foreign = { type: "reasoning", id: "rs_1", summary, encrypted_content: "gAAAAA" };
    const items = [
      { role: "user", content: "Hello." },
      { type: "reasoning", summary },
      foreign,
      { role: "user", content: input },
    ];
    const response = await client.post(path, { model, input: items, store: false });
    expect([response.status, response.headers.get("x-svc-ignored")]).to.deep.equal([200, "input[1], input[2]"]);
    expect(JSON.stringify(upstream.requests[0]?.body)).not.to.contain("gAAAAA");
  });

  it("gives the same response again for the same idempotency key", async () => {
    const headers = { "idempotency-key": "response-1" };
    const [first, again] = [
      await client.post(path, { model, input, store: false }, { headers }),
      await client.post(path, { model, input, store: false }, { headers }),
    ];
    expect(again.body).to.deep.equal(first.body);
    expect(upstream.requests).to.have.lengthOf(1);
  });

  it("bounds the items, the tools, the pictures and the sealed reasoning of a request", async () => {
    const user = { role: "user", content: "Hello." };
    const image = { type: "input_image", image_url: "https://pictures.example/quay.png" };
    const sealed = { type: "reasoning", encrypted_content: "svc1.".padEnd((3 << 19) + 1, "e") };
    const cases: [object, string][] = [
      [{ input: Array(2_001).fill(user) }, "input"],
      [{ input: [user, { role: "user", content: Array(101).fill(image) }] }, "input[1].content"],
      [{ input: [sealed, user] }, "input[0].encrypted_content"],
      [{ input, tools: Array(1_025).fill(tools[0]) }, "tools"],
      [{ input, max_output_tokens: 0 }, "max_output_tokens"],
    ];
    for (const [body, param] of cases) {
      const response = await client.post(path, { model, store: false, ...body });
      expect([response.status, response.at("error.param")]).to.deep.equal([400, param]);
    }
    expect(upstream.requests).to.have.lengthOf(0);
  });
});
