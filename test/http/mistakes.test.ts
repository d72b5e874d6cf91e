import { expect } from "chai";
import { makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

type Mistake = [call: string, body: unknown, status: number, code: string, message: string];

const hello = [{ role: "user", content: "Hello" }];
const agent = { name: "Desk", model: "meta-llm", systemPrompt: "You answer." };
const approval = { type: "human_approval", assigneeRole: "admin" };
const noAgent = "/agents/agt_01J00000000000000000000000";
const noJob = "/jobs/job_01J00000000000000000000000";

/** What a new user gets wrong, with the message that puts it right. `*`: the rest of the message may be anything. */
const mistakes: Mistake[] = [
  // What is sent
  ["POST /ai/chat", {}, 400, "invalid_request", "messages is missing."],
  ["POST /ai/chat", { messages: "Hello" }, 400, "invalid_request", "messages must be an array, not a string."],
  ["POST /ai/chat", { messages: [] }, 400, "invalid_request", "messages must not be empty."],
  ["POST /ai/chat", { messages: ["Hello"] }, 400, "invalid_request", "messages[0] must be an object, not a string."],
  ["POST /ai/chat", { messages: [{ content: "Hello" }] }, 400, "invalid_request", "messages[0].role is missing."],
  [
    "POST /ai/chat",
    { messages: [{ role: "human", content: "x" }] },
    400,
    "invalid_request",
    'messages[0].role must be one of "system", "user", "assistant", "tool".',
  ],
  [
    "POST /ai/chat",
    { messages: hello, temperature: "warm" },
    400,
    "invalid_request",
    "temperature must be a number, not a string.",
  ],
  ["POST /ai/chat", { messages: hello, temperature: 3 }, 400, "invalid_request", "temperature must be at most 2."],
  ["POST /ai/chat", { messages: hello, maxTokens: 0 }, 400, "invalid_request", "maxTokens must be at least 1."],
  ["POST /ai/chat", { messages: hello, maxTokens: 1.5 }, 400, "invalid_request", "maxTokens must be a whole number."],
  [
    "POST /ai/chat",
    { messages: hello, stream: "yes" },
    400,
    "invalid_request",
    "stream must be a boolean, not a string.",
  ],
  ["POST /ai/chat", { messages: hello, tools: {} }, 400, "invalid_request", "tools must be an array, not an object."],
  [
    "POST /ai/chat",
    { messages: hello, tools: [{ type: "tool" }] },
    400,
    "invalid_request",
    'tools[0].type must be "function".',
  ],
  ["POST /ai/chat", { messages: hello, model: "gpt-0" }, 400, "unknown_model", "*GET /ai/models*"],
  ["POST /ai/chat", { messages: hello, model: "gpt-4.1-mini" }, 400, "provider_not_configured", "*openai*"],
  ["POST /ai/chat", [], 400, "invalid_request", "body must be an object, not an array."],
  ["POST /ai/embeddings", {}, 400, "invalid_request", "input is missing."],
  ["POST /ai/embeddings", { input: 5 }, 400, "invalid_request", "input must be a string or an array, not a number."],
  ["POST /v1/chat/completions", { messages: hello }, 400, "invalid_request", "model is missing."],
  ["POST /rag/query", {}, 400, "invalid_request", "query is missing."],
  ["POST /rag/query", { query: "" }, 400, "invalid_request", "query must not be empty."],
  ["POST /rag/query", { query: "x", topK: 0 }, 400, "invalid_request", "topK must be at least 1."],
  ["POST /rag/query", { query: "x", topK: 1_000 }, 400, "invalid_request", "topK must be at most 100."],
  [
    "POST /rag/query",
    { query: "x", mode: "fuzzy" },
    400,
    "invalid_request",
    'mode must be one of "hybrid", "vector", "lexical".',
  ],
  [
    "POST /rag/query",
    { query: "x", documentIds: ["7"] },
    400,
    "invalid_request",
    "documentIds[0] must be an id that begins with doc_.",
  ],
  ["POST /rag/ingest", { url: "ftp://acme.io/a.pdf" }, 400, "source_refused", "*"],
  [
    "POST /rag/ingest",
    { url: "http://10.0.0.1/" },
    400,
    "source_refused",
    "This URL is not fetched. Its address is not public. The operator can allow its origin by FETCH_ALLOW_ORIGINS.",
  ],
  ["POST /agents", {}, 400, "invalid_request", "name is missing."],
  ["POST /agents", { ...agent, name: "" }, 400, "invalid_request", "name must not be empty."],
  ["POST /agents", { ...agent, maxIterations: 2_001 }, 400, "invalid_request", "maxIterations must be at most 2000."],
  ["POST /agents", { ...agent, tools: [{ type: "search" }] }, 400, "invalid_request", "tools[0].type must be one of *"],
  [
    "POST /agents",
    { ...agent, tools: [{ type: "http_request", config: {} }] },
    400,
    "invalid_request",
    "tools[0].config.allowedHosts is missing.",
  ],
  [`POST ${noAgent}/run`, {}, 400, "invalid_request", "input is missing."],
  [`POST ${noAgent}/run`, { input: "x" }, 404, "not_found", "There is no such agent."],
  ["POST /workflows", { name: "x" }, 400, "invalid_request", "steps is missing."],
  ["POST /workflows", { name: "x", steps: [] }, 400, "invalid_request", "steps must not be empty."],
  [
    "POST /workflows",
    { name: "x", steps: [{ type: "email" }] },
    400,
    "invalid_request",
    "steps[0].type must be one of *",
  ],
  [
    "POST /workflows",
    { name: "x", steps: [{ ...approval, assigneeRole: "boss" }] },
    400,
    "invalid_request",
    'steps[0].assigneeRole must be one of "owner", "admin".',
  ],
  [
    "POST /workflows",
    { name: "x", steps: [{ type: "rag_query", query: "{{ steps.later.output }}" }] },
    400,
    "invalid_request",
    "*steps.later*",
  ],
  [
    "POST /workflows",
    { name: "x", steps: [{ type: "rag_query", query: "{{ input.x + }}" }] },
    400,
    "invalid_request",
    "The expression ends too early (at character *)",
  ],
  [
    "POST /workflows",
    { name: "x", steps: [{ type: "rag_query" }] },
    400,
    "invalid_request",
    "steps[0].query is missing.",
  ],
  ["POST /composite/execute", { profile: "coding", input: "x" }, 400, "invalid_request", "pattern is missing."],
  [
    "POST /composite/execute",
    { pattern: "vote", profile: "coding", input: "x" },
    400,
    "invalid_request",
    "pattern must be one of *",
  ],
  [
    "POST /composite/execute",
    { pattern: "debate", profile: "medical", input: "x" },
    400,
    "invalid_request",
    "profile must be one of *",
  ],
  [
    "POST /composite/execute",
    { pattern: "debate", profile: "healthcare", input: "SSN: 219-09-9999" },
    422,
    "compliance_blocked",
    "*",
  ],
  ["POST /keys", { role: "root" }, 400, "invalid_request", 'role must be one of "member", "admin", "owner".'],
  [
    "POST /keys",
    { expiresAt: "tomorrow" },
    400,
    "invalid_request",
    "expiresAt must be a date and time, as 2026-01-31T12:00:00Z.",
  ],
  ["PUT /ai/providers/openai/key", {}, 400, "invalid_request", "key is missing."],
  [
    "POST /ai/widget/key",
    { agent: "agt_1" },
    400,
    "invalid_request",
    "body must not have the field agent; did you mean agent_id?",
  ],
  [
    "POST /ai/widget/key",
    { allowedOrigins: ["acme.io"] },
    400,
    "invalid_request",
    "allowedOrigins[0] must be an origin, as https://acme.io.",
  ],
  [
    "PUT /ai/fallbacks",
    { fallbacks: { model: "x" } },
    400,
    "invalid_request",
    "fallbacks must be an array, not an object.",
  ],
  // What is asked for
  ["GET /jobs?limit=many", undefined, 400, "invalid_request", "limit must be a number."],
  ["GET /jobs?limit=0", undefined, 400, "invalid_request", "limit must be at least 1."],
  ["GET /jobs?status=done", undefined, 400, "invalid_request", "status must be one of *"],
  ["GET /usage?from=yesterday", undefined, 400, "invalid_request", "from must be a date, as 2026-01-31."],
  [
    "GET /usage?groupBy=tenant",
    undefined,
    400,
    "invalid_request",
    'groupBy must be one of "model", "surface", "day", "hour", "key", "subject".',
  ],
  [
    "GET /jobs/7",
    undefined,
    404,
    "not_found",
    "There is nothing at this path: id must be an id that begins with job_.",
  ],
  [`GET ${noJob}`, undefined, 404, "not_found", "There is no such job."],
  [
    "PUT /ai/providers/acme/key",
    { key: "k".repeat(30) },
    404,
    "not_found",
    "There is nothing at this path: provider must be one of *",
  ],
  ["GET /chat", undefined, 404, "not_found", "There is nothing at /chat."],
  [
    "POST /chat/completions",
    { messages: hello },
    404,
    "not_found",
    "There is nothing at /chat/completions. It is /v1/chat/completions: set the base URL of your client to the address with /v1.",
  ],
  ["GET /models", undefined, 404, "not_found", "There is nothing at /models. It is /v1/models: *"],
  ["DELETE /ai/chat", undefined, 405, "method_not_allowed", "/ai/chat does not take DELETE."],
];

/** Wording of the libraries beneath, of stacks and of settings, which no user should have to read. */
const foreignWords =
  /invalid input|unexpected token|received undefined|expected string|zod|discriminator|too (small|big)|\bat .+:\d+:\d+|node_modules|ECONN|process\.env/i;

describe("typical mistakes", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false });
  });
  after(() => test.close());

  const send = (
    call: string,
    options: { body?: unknown; raw?: string; headers?: Record<string, string>; key?: string },
  ) => {
    const [method = "", path = ""] = call.split(" ");
    const { key = test.keys.owner, ...rest } = options;
    return makeClient({ url: test.url, key }).request(method, path, rest);
  };

  const matches = (text: string, pattern: string) =>
    new RegExp(`^${pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`).test(text);

  for (const [call, body, status, code, message] of mistakes) {
    it(`${call} ${JSON.stringify(body)?.slice(0, 80) ?? ""}`, async () => {
      const answer = await send(call, body === undefined ? {} : { body });
      expect([answer.status, answer.at("error.code")], answer.text).to.deep.equal([status, code]);
      const text = answer.string("error.message");
      expect(matches(text, message), text).to.equal(true);
      expect(answer.text).not.to.match(foreignWords);
    });
  }

  it("with the key and with the body get different errors", async () => {
    const json = { "content-type": "application/json" };
    const { owner, member } = test.keys;
    const cases: [Parameters<typeof send>[1] & { call: string }, number, string, string][] = [
      [
        { call: "GET /jobs", headers: { authorization: "" } },
        401,
        "missing_api_key",
        "Send your API key as `Authorization: Bearer <key>`.",
      ],
      [{ call: "GET /jobs", headers: { authorization: owner } }, 401, "invalid_api_key", "*word `Bearer` is missing*"],
      [{ call: "GET /jobs", key: `sk_${"0".repeat(32)}` }, 401, "invalid_api_key", "The API key is unknown*"],
      [
        { call: "GET /keys", key: member },
        403,
        "insufficient_role",
        "This needs a key with the role owner; yours has the role member.",
      ],
      [
        { call: "POST /keys", raw: "{'role': 'member'}", headers: json },
        400,
        "malformed_json",
        "The body is not valid JSON (at character 2).",
      ],
      [
        { call: "POST /keys", raw: "role=member" },
        415,
        "unsupported_media_type",
        "The body must be JSON, with content-type application/json.",
      ],
    ];
    for (const [{ call, ...options }, status, code, message] of cases) {
      const answer = await send(call, options);
      expect([answer.status, answer.at("error.code")], call).to.deep.equal([status, code]);
      expect(matches(answer.string("error.message"), message), answer.text).to.equal(true);
      expect(answer.text).not.to.match(foreignWords);
    }
  });

  it("of a body with very many fields are refused before parsing; a text may hold any number of colons", async () => {
    const part = Object.fromEntries(Array.from({ length: 40_000 }, (_, n) => [`k${n}`, 0]));
    const many = await send("POST /rag/query", { body: { query: "x", parts: Array(6).fill(part) } });
    expect([many.status, many.at("error.message")]).to.deep.equal([400, "The body has more than 200000 fields."]);
    const text = { role: "user", content: '\\"a":1,'.repeat(50_000) };
    const taken = await send("POST /ai/chat", { body: { messages: Array(8).fill(text), model: "gpt-0" } });
    expect(taken.at("error.code"), "it was read").to.equal("unknown_model");
  });

  it("of a body that nests very deep are refused before parsing; a text may hold any number of brackets", async () => {
    const raw = `{"query":"x","filter":${"[".repeat(100_000)}`;
    const deep = await send("POST /rag/query", { raw, headers: { "content-type": "application/json" } });
    const message = "The body is nested deeper than 100 levels.";
    expect([deep.status, deep.at("error.message")], "not: no valid JSON").to.deep.equal([400, message]);
    const text = { role: "user", content: '["\\\\{'.repeat(50_000) };
    const taken = await send("POST /ai/chat", { body: { messages: [text], model: "gpt-0" } });
    expect(taken.at("error.code"), "it was read").to.equal("unknown_model");
  });

  it("of a field's name are shown in the body too, in debug mode", async () => {
    const body = { query: "pump", topk: 3 };
    const quiet = await send("POST /rag/query", { body });
    expect([quiet.headers.get("x-svc-ignored"), quiet.at("_ignored")]).to.deep.equal(["topk", undefined]);
    const debugged = await send("POST /rag/query", { body, headers: { "x-svc-debug": "true" } });
    expect(debugged.at("_ignored")).to.deep.equal(["topk"]);
  });

  it("are not reported for a null in an optional field, and a name that the caller chose is kept", async () => {
    const nulls = { description: null, tools: null, maxIterations: null, temperature: null };
    const made = await send("POST /agents", { body: { ...agent, ...nulls } });
    expect([made.status, made.at("maxIterations"), made.at("tools")]).to.deep.equal([201, 10, []]);
    const required = await send("POST /agents", { body: { ...agent, model: null } });
    expect(required.at("error.message")).to.equal("model is missing.");
    const filter = await send("POST /rag/query", { body: { query: "x", filter: { site: null } } });
    expect([filter.status, filter.at("error.param")]).to.deep.equal([400, "filter.site"]);
  });
});
