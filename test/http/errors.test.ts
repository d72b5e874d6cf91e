import { expect } from "chai";
import { serveApi } from "../../api/server.ts";
import { newId } from "../../src/lib/ids.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { sendBytes } from "../support/raw-http.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const JSON_LIMIT = 64 << 10;

describe("errors and bad input", () => {
  let platform: TestPlatform;
  let owner: ApiClient;
  before(async () => {
    platform = await startPlatform({ workers: false, env: { MAX_JSON_BYTES: String(JSON_LIMIT) } });
    owner = makeClient({ url: platform.url, key: platform.keys.owner });
  });
  after(() => platform.close());

  const postRaw = (raw: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    owner.request("POST", "/keys", { raw, headers: { "content-type": "application/json", ...headers } });

  const send = (text: string) => sendBytes(platform.url, text);

  for (const [name, raw] of [
    ["nothing", ""],
    ["half an object", '{"role":'],
    ["two values", "{} {}"],
    ["a comment", "{/* */}"],
    ["single quotes", "{'role':'member'}"],
    ["NaN", '{"role":NaN}'],
    ["a raw control character", '{"name":"a\nb"}'],
    ["ten thousand brackets", "[".repeat(10_000)],
  ] as const) {
    it(`malformed JSON, ${name}, is a 400 that does not quote the body`, async () => {
      const { status, at, text } = await postRaw(raw);
      expect([status, at("error.code")]).to.deep.equal([400, "malformed_json"]);
      expect(text.length).to.be.below(400);
    });
  }

  it("JSON that is not UTF-8 is a 400", async () => {
    const { status, at } = await postRaw(new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]));
    expect([status, at("error.code")]).to.deep.equal([400, "malformed_json"]);
  });

  it("a body nested too deeply is a 400", async () => {
    const { status, at } = await postRaw(`{"name":${"[".repeat(5_000)}${"]".repeat(5_000)}}`);
    expect([status, at("error.code")]).to.deep.equal([400, "invalid_request"]);
  });

  it("a byte order mark does not matter", async () => {
    expect((await postRaw("\ufeff{}")).status).to.equal(201);
  });

  it("every field of a wrong type is named with its path", async () => {
    const { status, at } = await owner.post("/keys", { role: 1, subject: {}, name: ["x"], expiresAt: "soon" });
    expect(status).to.equal(400);
    expect(at("error.param")).to.equal("role");
    const details = at("error.details");
    expect(details).to.have.length(4);
    for (const path of ["role", "subject", "name", "expiresAt"]) {
      expect(JSON.stringify(details)).to.contain(`"path":"${path}"`);
    }
  });

  it("a body that is no object is a 400", async () => {
    for (const body of [[], "text", 7, null, true]) {
      const { status, at } = await owner.post("/keys", body);
      expect([status, at("error.code")], JSON.stringify(body)).to.deep.equal([400, "invalid_request"]);
    }
  });

  it("unknown fields are ignored, and named", async () => {
    const messages = [{ role: "user", content: [{ type: "text", text: "Hi", lang: "en" }], at: 1 }];
    const body = { messages, rolle: "owner", "ü\n": 1, __proto__x: 2 };
    const { status, headers } = await owner.post("/ai/chat?verbose=1", body);
    expect(status).to.equal(200);
    expect(headers.get("x-svc-ignored")).to.equal(
      "verbose, messages[0].content[0].lang, messages[0].at, rolle, %C3%BC%0A, __proto__x",
    );
    const proto = await postRaw('{"__proto__":{"role":"owner"},"constructor":{"prototype":{"role":"owner"}}}');
    expect([proto.status, proto.at("error.param")]).to.deep.equal([400, "body"]);
  });

  it("bad query parameters are a 400 with their names", async () => {
    for (const [query, param] of [
      ["limit=0", "limit"],
      ["limit=201", "limit"],
      ["limit=ten", "limit"],
      ["limit=1&limit=2", "limit"],
      ["limit=1.5", "limit"],
      ["status=done", "status"],
      ["kind=", "kind"],
      ["cursor=", "cursor"],
    ]) {
      const { status, at } = await owner.get(`/jobs?${query}`);
      expect([status, at("error.param"), at("error.details[0].in")], query).to.deep.equal([400, param, "query"]);
    }
  });

  it("a body that is not JSON is a 415", async () => {
    for (const headers of [
      { "content-type": "text/plain" },
      { "content-type": "application/x-www-form-urlencoded" },
      { "content-type": "application/json; charset=latin1" },
      { "content-encoding": "gzip" },
      { "content-type": "multipart/form-data; boundary=x" },
    ]) {
      const { status, at } = await postRaw("{}", headers);
      expect([status, at("error.code")], JSON.stringify(headers)).to.deep.equal([415, "unsupported_media_type"]);
    }
    expect((await postRaw("{}", { "content-type": "application/vnd.api+json; charset=UTF-8" })).status).to.equal(201);
  });

  it("a body over the limit is a 413, with or without content-length, and the next request is served", async () => {
    const large = `{"name":"${"x".repeat(JSON_LIMIT)}"}`;
    const reported = await postRaw(large);
    expect([reported.status, reported.at("error.code")]).to.deep.equal([413, "request_too_large"]);
    expect(reported.at("error.details.limitBytes")).to.equal(JSON_LIMIT);
    const key = platform.keys.owner;
    const chunk = "x".repeat(8_000);
    const chunks = `${chunk.length.toString(16)}\r\n${chunk}\r\n`.repeat(20);
    const head = `POST /keys HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n`;
    const untold = await send(`${head}transfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
    expect(untold).to.match(/^HTTP\/1\.1 413 /);
    expect((await owner.get("/keys")).status).to.equal(200);
  });

  it("a client that expects 100-continue is refused before it sends", async () => {
    const head = "POST /keys HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-type: application/json\r\n";
    const refused = await send(`${head}content-length: 1000000000\r\nconnection: close\r\n\r\n`);
    expect(refused).to.match(/^HTTP\/1\.1 401 /);
    const key = `authorization: Bearer ${platform.keys.owner}\r\n`;
    expect(await send(`${head}${key}content-length: 1000000000\r\n\r\n`)).to.match(/^HTTP\/1\.1 413 /);
    const taken = await send(`${head}${key}content-length: 2\r\nconnection: close\r\n\r\n{}`);
    expect(taken).to.match(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
  });

  it("an unknown path is a 404, a known one with another method a 405 that names the right ones", async () => {
    const unknown = await owner.get("/nothing/here?x=1");
    expect([unknown.status, unknown.at("error.code")]).to.deep.equal([404, "not_found"]);
    const wrong = await owner.request("PATCH", "/keys");
    expect([wrong.status, wrong.at("error.code")]).to.deep.equal([405, "method_not_allowed"]);
    expect(wrong.headers.get("allow")).to.equal("POST, HEAD, GET, OPTIONS");
    const options = await owner.request("OPTIONS", "/keys");
    expect([options.status, options.headers.get("allow")]).to.deep.equal([204, "POST, HEAD, GET, OPTIONS"]);
    expect(options.headers.get("access-control-allow-origin")).to.equal(null);
    const head = await owner.request("HEAD", "/keys");
    expect([head.status, head.text]).to.deep.equal([200, ""]);
  });

  it("calls without a route or a key are all answered, many at once at 800 a second", async () => {
    const paths = Array.from({ length: 400 }, (_, n) => (n % 2 === 0 ? `/nothing/${n}` : "/jobs"));
    const heads = paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n`);
    const startedAt = performance.now();
    const answers = await send(`${heads.join("\r\n")}connection: close\r\n\r\n`);
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
    expect(statuses).to.deep.equal(paths.map((_, n) => (n % 2 === 0 ? 404 : 401)));
    expect(performance.now() - startedAt, "ms").to.be.at.least(400);
  });

  it("calls for pages that anybody may read are all answered, many at once at the pace of 800 a second", async () => {
    const heads = Array.from({ length: 400 }, () => "GET / HTTP/1.1\r\nhost: localhost\r\n");
    const startedAt = performance.now();
    const answers = await send(`${heads.join("\r\n")}connection: close\r\n\r\n`);
    expect([...answers.matchAll(/HTTP\/1\.1 200 /g)]).to.have.length(400);
    expect(performance.now() - startedAt, "ms").to.be.at.least(400);
  });

  it("odd paths are answered, never a 5xx", async () => {
    for (const path of [
      "/%",
      "/jobs/%",
      "/jobs/%00",
      "/jobs/%2e%2e%2f",
      "//",
      "/jobs//",
      `/jobs/${"a".repeat(5_000)}`,
      "/jobs/__proto__",
    ]) {
      const { status } = await owner.get(path);
      expect(status, path).to.be.oneOf([404, 200]);
    }
    expect(await send("GET http://elsewhere/healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).to.match(
      / (200|404) /,
    );
    expect(await send("OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).to.match(/^HTTP\/1\.1 404 /);
  });

  it("only names and ids of a path are logged, and no other text of the caller", async () => {
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const api = await serveApi({
      ...platform.platform,
      logger: makeLogger({ level: "trace", name: "t", destination }),
    });
    try {
      const client = makeClient({ url: api.url, key: platform.keys.owner });
      const places = ["/composite/executions/", "/jobs/", "/v1/models/", "/ai/providers/", "/nothing/"];
      for (const place of places)
        expect((await client.get(`${place}219-09-9999`)).status, place).to.be.oneOf([404, 405]);
      expect((await client.post("/v1/models/219-09-9999", {})).status).to.equal(405);
      const stranger = makeClient({ url: api.url, key: "svc_unknown" });
      expect((await stranger.get("/v1/models/219-09-9999")).status).to.equal(401);
      const job = newId("job");
      expect((await client.get(`/jobs/${job}/events`)).status).to.equal(404);
      await pollUntil(() => lines.length >= places.length + 3, { what: "the lines" });
      const logged = lines.map((line) => JSON.parse(line).path);
      expect(logged).to.include.members(["/v1/models/:model", "/jobs/:id", "/nothing/…", `/jobs/${job}/events`]);
      expect(lines.join("")).not.to.contain("219-09");
    } finally {
      await api.close();
    }
  });

  it("a request that is not HTTP is a 400 with a JSON body", async () => {
    const answer = await send("THIS IS NOT HTTP\r\n\r\n");
    expect(answer)
      .to.match(/^HTTP\/1\.1 400 /)
      .and.to.contain('"code":"invalid_request"');
    const large = await send(`GET / HTTP/1.1\r\nx: ${"y".repeat(40_000)}\r\n\r\n`);
    expect(large).to.match(/^HTTP\/1\.1 431 /);
  });

  it("a sane request id is echoed, any other is replaced", async () => {
    const echoed = await owner.get("/healthz", { headers: { "x-request-id": "abc-123" } });
    expect(echoed.headers.get("x-request-id")).to.equal("abc-123");
    for (const id of ["a b", "x".repeat(200), "<script>", '"']) {
      const replaced = await owner.get("/healthz", { headers: { "x-request-id": id } });
      expect(replaced.headers.get("x-request-id")).to.match(/^req_[0-9A-Z]{26}$/);
    }
  });

  it("every response has its id and the security headers, whichever part of the API sends it", async () => {
    const operator = { authorization: "Bearer operator-token-of-the-tests" };
    const stream = { messages: [{ role: "user", content: "Hello" }], stream: true };
    const calls: [method: string, path: string, status: number, init?: RequestInit][] = [
      ["GET", "/healthz", 200],
      ["HEAD", "/healthz", 200],
      ["GET", "/nothing", 404],
      ["GET", "/jobs", 401],
      ["GET", "/docs", 200],
      ["OPTIONS", "/jobs", 204],
      ["OPTIONS", "/ai/chat", 204, { headers: { origin: "https://example.com" } }],
      ["PATCH", "/jobs", 405],
      ["POST", "/ai/chat", 400, { body: "{}" }],
      ["POST", "/ai/chat", 200, { body: JSON.stringify(stream) }],
      ["GET", "/metrics", 401, { headers: {} }],
      ["GET", "/metrics", 200, { headers: operator }],
      ["GET", "/admin/queues", 401, { headers: {} }],
      ["GET", "/admin/queues", 200, { headers: operator }],
    ];
    for (const [method, path, status, init] of calls) {
      const isOwners = init?.body !== undefined;
      const json = { authorization: `Bearer ${platform.keys.owner}`, "content-type": "application/json" };
      const answer = await fetch(platform.url + path, { method, ...(isOwners ? { headers: json } : {}), ...init });
      await answer.text();
      const { headers } = answer;
      const what = `${method} ${path}`;
      expect(answer.status, what).to.equal(status);
      expect(headers.get("x-powered-by"), what).to.equal(null);
      expect(headers.get("x-content-type-options"), what).to.equal("nosniff");
      expect(headers.get("x-request-id"), what).to.match(/^req_/);
      expect(headers.get("content-security-policy"), what).to.match(/default-src '(none|self)'/);
      const isPreflight = method === "OPTIONS" && path === "/ai/chat";
      expect(headers.get("access-control-allow-origin"), what).to.equal(isPreflight ? "https://example.com" : null);
    }
  });
});
