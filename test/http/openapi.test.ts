import { expect } from "chai";
import { z } from "zod";
import { allRoutes } from "../../api/all-routes.ts";
import { errorCodes } from "../../src/lib/errors.ts";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("the OpenAPI document", () => {
  let platform: TestPlatform;
  let client: ApiClient;
  let document: unknown;
  before(async () => {
    platform = await startPlatform({ workers: false });
    client = makeClient({ url: platform.url });
    document = (await client.get("/openapi.json")).body;
  });
  after(() => platform.close());

  const operations = () =>
    Object.entries(valueAt(document, "paths") as Record<string, Record<string, unknown>>).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    );

  it("is version 3.1 and has every route, once", () => {
    expect(valueAt(document, "openapi")).to.equal("3.1.0");
    const declared = allRoutes.map((route) => `${route.method} ${route.path.replace(/:(\w+)/g, "{$1}")}`);
    const documented = operations().map(({ method, path }) => `${method} ${path}`);
    expect(documented).to.include.members(declared);
    expect(new Set(declared).size).to.equal(declared.length);
  });

  it("gives every operation its own id, a summary, a tag and answers", () => {
    const ids = operations().map(({ operation }) => valueAt(operation, "operationId"));
    expect(new Set(ids).size).to.equal(ids.length);
    for (const { path, method, operation } of operations()) {
      const where = `${method} ${path}`;
      expect(valueAt(operation, "summary"), where).to.be.a("string").with.length.above(3);
      expect(valueAt(operation, "tags"), where).to.be.an("array").with.length.above(0);
      expect(Object.keys(valueAt(operation, "responses") ?? {}), where).to.include("500");
    }
  });

  it("declares every parameter of a path", () => {
    for (const { path, method, operation } of operations()) {
      const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      const declared = (valueAt(operation, "parameters") ?? []) as { in: string; name: string }[];
      expect(
        declared.filter((each) => each.in === "path").map((each) => each.name),
        `${method} ${path}`,
      ).to.have.members(names);
    }
  });

  it("documents 401 and 429 on what needs a key, and marks the rest as open", () => {
    for (const { path, method, operation } of operations()) {
      const isOpen = JSON.stringify(valueAt(operation, "security")) === "[]";
      const isPublic =
        /^\/($|healthz|readyz|openapi\.json|docs|widget.*|\.well-known\/.*|(?:pages|console)\/.*|approvals|runs\/\{runId\}|event-sources\/\{id\}\/events)$/.test(
          path,
        );
      expect(isOpen, `${method} ${path}`).to.equal(isPublic);
      const statuses = Object.keys(valueAt(operation, "responses") ?? {});
      const unavailable = path.startsWith("/v1/messages") ? "529" : "503"; // as Anthropic's clients know it
      if (!isOpen) expect(statuses, `${method} ${path}`).to.include.members(["401", "429", unavailable]);
    }
  });

  it("resolves every reference", () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? "");
    expect(references).to.have.length.above(10);
    for (const reference of new Set(references)) {
      expect(reference).to.match(/^#\//);
      expect(valueAt(document, reference.slice(2).replaceAll("/", ".")), reference).to.be.an("object");
    }
  });

  it("names what a client sends and receives, each once", () => {
    const schemas = valueAt(document, "components.schemas") as Record<string, unknown>;
    expect(schemas).to.include.keys(
      ...["ChatRequest", "ChatResponse", "Agent", "AgentRun", "Workflow", "WorkflowRun", "Job", "Document", "Error"],
    );
    for (const name of Object.keys(schemas)) expect(name).to.match(/^[A-Z][A-Za-z0-9]*$/);
    const shapes = Object.values(schemas).map((schema) => JSON.stringify(schema));
    expect(new Set(shapes).size, "a schema under two names").to.equal(shapes.length);
    for (const { path, method, operation } of operations()) {
      const responses = Object.entries((valueAt(operation, "responses") ?? {}) as Record<string, unknown>);
      const successes = responses.filter(([status]) => Number(status) < 300).map(([, response]) => response);
      for (const part of [valueAt(operation, "requestBody"), ...successes]) {
        for (const { schema } of Object.values(
          (valueAt(part, "content") ?? {}) as Record<string, { schema: object }>,
        )) {
          const isNamed = "$ref" in schema;
          expect(isNamed || JSON.stringify(schema).length < 100, `${method} ${path}`).to.equal(true);
        }
      }
    }
  });

  it("has examples that fit its schemas", () => {
    const local = JSON.parse(JSON.stringify(document).replaceAll("#/components/schemas/", "#/$defs/"));
    let count = 0;
    for (const [path, methods] of Object.entries(local.paths as Record<string, Record<string, unknown>>)) {
      for (const [method, operation] of Object.entries(methods)) {
        const content = valueAt(operation, "requestBody.content") as Record<string, unknown> | undefined;
        const { schema, example } = (content?.["application/json"] ?? {}) as { schema?: object; example?: unknown };
        if (schema === undefined || example === undefined) continue;
        const checked = z.fromJSONSchema({ ...schema, $defs: local.components.schemas }).safeParse(example);
        expect(checked.error?.message, `${method} ${path}`).to.equal(undefined);
        count += 1;
      }
    }
    expect(count).to.be.above(10);
  });

  it("lists every error code", () => {
    const listed = valueAt(document, "components.schemas.Error.properties.error.properties.code.enum");
    expect(listed).to.have.members(Object.keys(errorCodes));
  });

  it("is made once, and sent compressed or as 304 on request", async () => {
    for (const path of ["/openapi.json", "/docs"]) {
      const plain = await fetch(platform.url + path, { headers: { "accept-encoding": "identity" } });
      const zipped = await fetch(platform.url + path, { headers: { "accept-encoding": "gzip" } });
      expect([plain.headers.get("content-encoding"), zipped.headers.get("content-encoding")]).to.deep.equal([
        null,
        "gzip",
      ]);
      expect(await zipped.text()).to.equal(await plain.text());
      expect(Number(zipped.headers.get("content-length"))).to.be.below(Number(plain.headers.get("content-length")) / 4);
      const again = await client.get(path, { headers: { "if-none-match": plain.headers.get("etag") ?? "" } });
      expect([again.status, again.text]).to.deep.equal([304, ""]);
    }
  });

  it("is shown on the page as tables of fields, each named schema once, with a call by curl", async () => {
    const { text } = await client.get("/docs");
    expect(text).not.to.match(/&quot;(?:additionalProperties|anyOf|\$ref)&quot;:/);
    for (const field of ["messages", "messages[].role", "tools[].function.name"])
      expect(text, field).to.contain(`<td><code>${field}</code> <b>required</b></td>`);
    const links = [...text.matchAll(/href="#([^"]+)"/g)].map(([, name]) => name);
    const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, name]) => name);
    expect(new Set(ids).size).to.equal(ids.length);
    expect(ids).to.include.members(links);
    expect(ids).to.include.members(Object.keys(valueAt(document, "components.schemas") as object));
    expect(text).to.contain("curl -s &quot;$URL/ai/models&quot; -H &quot;authorization: Bearer $KEY&quot;");
    const operations = text.split('<details class="card operation"').slice(1);
    expect(operations).to.have.length(allRoutes.length + 2); // the two that document the others
    for (const operation of operations)
      expect(operation.split("<pre>curl -s").length, operation.slice(0, 80)).to.equal(2);
    const chat = text.slice(text.indexOf('id="postAiChat"'), text.indexOf('id="getAiModels"'));
    expect(chat.split("<tr>").length, "rows of POST /ai/chat").to.be.below(80);
  });

  it("is a page for people too, which loads nothing from elsewhere, and no script but its filter", async () => {
    const { status, headers, text } = await client.get("/docs");
    expect(status).to.equal(200);
    expect(headers.get("content-type")).to.equal("text/html; charset=utf-8");
    for (const route of allRoutes) expect(text).to.contain(route.path.replace(/:(\w+)/g, "{$1}"));
    const scripts = [...text.matchAll(/<script[^>]*>|src="[^"]*"/g)].map(([tag]) => tag);
    expect(scripts).to.deep.equal(['<script src="/pages/docs.js" type="module">']);
    expect(text).not.to.match(/https?:\/\/(?!json-schema|desk\.example\.com)/);
    expect(headers.get("content-security-policy")).to.contain("default-src 'none'");
  });
});
