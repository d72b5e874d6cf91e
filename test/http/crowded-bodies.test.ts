import { expect } from "chai";
import { cpuTimeOf } from "../support/cpu-time.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { rpc } from "../support/mcp-call.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** So many fields as JSON, each with the value `[]`, which no field of ours takes. */
const fields = (count: number) => Array.from({ length: count }, (_, n) => `"k ${n}":[]`).join(",");
const message = { role: "user", content: "Who are you?" };
const ofTool = (parameters: string) =>
  `{"messages":[${JSON.stringify(message)}],"tools":[{"type":"function","function":{"name":"f","parameters":${parameters}}}]}`;
const ofHeaders = (headers: string) =>
  `{"name":"a","model":"meta-llm","systemPrompt":"s","tools":[{"type":"mcp","config":{"url":"https://example.com/","headers":${headers}}}]}`;
const ofBatch = (metadata: string) =>
  `{"input_file_id":"file_01J00000000000000000000000","endpoint":"/v1/chat/completions","completion_window":"24h","metadata":${metadata}}`;
const ofFormat = (format: string) =>
  `{"model":"meta-llm","messages":[${JSON.stringify(message)}],"response_format":${format}}`;

/** Bodies whose marked object a caller fills, by its path in the error. */
const places: [path: string, param: string, body: (object: string) => string][] = [
  ["/rag/ingest", "metadata", (object) => `{"content":"x","metadata":${object}}`],
  ["/rag/query", "filter", (object) => `{"query":"x","filter":${object}}`],
  ["/agents", "tools[0].config.headers", ofHeaders],
  ["/v1/batches", "metadata", ofBatch],
  ["/ai/chat", "tools[0].function.parameters", ofTool],
  [
    "/v1/chat/completions",
    "tools[0].function.parameters",
    (object) => `{"model":"meta-llm",${ofTool(object).slice(1)}`,
  ],
  ["/v1/chat/completions", "response_format", ofFormat],
];

describe("bodies with very many fields", function () {
  this.timeout(120_000);
  let test: TestPlatform;
  let member: ApiClient;
  before(async () => {
    test = await startPlatform({ workers: false });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  const post = (path: string, raw: string) =>
    member.request("POST", path, { raw, headers: { "content-type": "application/json" } });

  for (const [path, param, toBody] of places) {
    it(`${path}: ${param} with too many fields is refused by one problem, in about the time that parsing takes`, async () => {
      const raw = toBody(`{${fields(path === "/rag/ingest" ? 300_000 : 50_000)}}`);
      const before = process.cpuUsage();
      const { status, at, text } = await post(path, raw);
      const { user, system } = process.cpuUsage(before);
      expect([status, at("error.code")]).to.deep.equal([400, "invalid_request"]);
      expect(at("error.param")).to.equal(path === "/rag/ingest" ? "body" : param);
      expect(text.length).to.be.below(1_000);
      expect((user + system) / 1_000, "ms of the processor").to.be.below(2_000 + 5 * cpuTimeOf(() => JSON.parse(raw)));
    });

    it(`${path}: ${param} takes no field of the name __proto__`, async () => {
      const { status, at } = await post(path, toBody('{"__proto__":"a"}'));
      expect([status, at("error.param")]).to.deep.equal([400, param]);
      expect(at("error.message")).to.contain("__proto__");
    });
  }

  it("unknown fields are ignored however many they are, and some of them are named", async () => {
    const { status, headers } = await post("/ai/chat", `{"messages":[${JSON.stringify(message)}],${fields(50_000)}}`);
    expect(status).to.equal(200);
    expect(headers.get("x-svc-ignored")?.split(", ")).to.have.length(20);
    const more = await post("/ai/chat", `{"messages":[${JSON.stringify(message)}],${fields(300_000)}}`);
    expect([more.status, more.at("error.param")]).to.deep.equal([400, "body"]);
  });

  it("only some of the refused names are listed", async () => {
    const agent = { name: "a", model: "meta-llm", systemPrompt: "s" };
    const config = JSON.parse(`{${fields(50_000)}}`);
    for (const body of [
      { ...agent, tools: [{ type: "calculator", config }] },
      {
        ...agent,
        tools: [{ type: "mcp", config: { url: "https://example.com/", headers: { ["k ".repeat(1e6)]: "" } } }],
      },
    ]) {
      const { status, text } = await post("/agents", JSON.stringify(body));
      expect(status).to.equal(400);
      expect(text.length).to.be.below(2_000);
    }
  });

  it("each route bounds the bytes of its bodies, and names the setting that raises the bound", async () => {
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const routes: [method: string, path: string, bytes: number, words: string][] = [
      ["POST", "/ai/chat", 4 << 20, "4 MB (MAX_JSON_BYTES)"],
      ["POST", "/v1/responses", 4 << 20, "4 MB (MAX_JSON_BYTES)"],
      ["POST", "/rag/ingest", 20 << 20, "20 MB (5 times MAX_JSON_BYTES)"],
      ["POST", "/keys", 256 << 10, "256 KB"],
      ["PUT", "/budget", 256 << 10, "256 KB"],
      ["PUT", "/rag/settings", 256 << 10, "256 KB"],
    ];
    for (const [method, path, bytes, words] of routes) {
      const raw = `{"x":"${"x".repeat(bytes)}"}`;
      const headers = { "content-type": "application/json" };
      const { status, at } = await owner.request(method, path, { raw, headers });
      expect([status, at("error.code")], path).to.deep.equal([413, "request_too_large"]);
      expect(at("error.message")).to.equal(`The body is larger than ${words}.`);
      expect(at("error.details.limitBytes")).to.equal(bytes);
    }
  });

  it("a form's file is bounded in words, with the setting that raises the bound", async () => {
    const form = new FormData();
    form.set("file", new File([new Uint8Array((50 << 20) + 1)], "large.txt"));
    const { status, at } = await makeClient({ url: test.url, key: test.keys.member }).request("POST", "/rag/ingest", {
      raw: form,
    });
    expect([status, at("error.code")]).to.deep.equal([413, "request_too_large"]);
    expect(at("error.message")).to.equal("The file is larger than 50 MB (MAX_SOURCE_BYTES).");
  });

  it("lists of very many items are refused before they are parsed", async () => {
    for (const item of ["{}", "0", "[]"]) {
      const content = `[${Array(700).fill(item).join()}]`;
      const raw = `{"model":"meta-llm","input":[${Array(1_400).fill(`{"role":"user","content":${content}}`).join()}]}`;
      const before = process.cpuUsage();
      const { status, at } = await post("/v1/responses", raw);
      const { user, system } = process.cpuUsage(before);
      expect([status, at("error.param")]).to.deep.equal([400, "body"]);
      expect((user + system) / 1_000, "ms of the processor").to.be.below(300 + 2 * cpuTimeOf(() => JSON.parse(raw)));
    }
  });

  it("the schema of a tool's arguments may be large, and not without bound", async () => {
    const properties = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, { type: "string" }]));
    const deep = (levels: number): object => (levels === 0 ? {} : { items: deep(levels - 1) });
    for (const [parameters, expected] of [
      [{ type: "object", properties: properties(2_000) }, 200],
      [{ type: "object", properties: properties(3_000) }, 400],
      [deep(30), 200],
      [deep(40), 400],
      [{ description: "x".repeat(100_000) }, 200],
      [{ description: "x".repeat(200_000) }, 400],
    ] as const) {
      const { status, at } = await post("/ai/chat", ofTool(JSON.stringify(parameters)));
      expect([status, at("error.param")]).to.deep.equal([
        expected,
        expected === 400 ? "tools[0].function.parameters" : undefined,
      ]);
    }
  });

  it("a message to the tool server may have few fields only", async () => {
    const { status, at } = await post("/mcp", `${JSON.stringify(rpc(1, "ping")).slice(0, -1)},${fields(50_000)}}`);
    expect([status, at("error.code"), at("id")]).to.deep.equal([400, -32_600, null]);
  });
});
