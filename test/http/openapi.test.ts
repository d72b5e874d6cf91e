import { expect } from "chai";
import { allRoutes } from "../../api/all-routes.ts";
import { errorCodes } from "../../src/errors.ts";
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
      const isPublic = /^\/(healthz|readyz|openapi\.json|docs|widget.*|pages\/.*|approvals|runs\/\{runId\})$/.test(
        path,
      );
      expect(isOpen, `${method} ${path}`).to.equal(isPublic);
      const statuses = Object.keys(valueAt(operation, "responses") ?? {});
      if (!isOpen) expect(statuses, `${method} ${path}`).to.include.members(["401", "429", "503"]);
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

  it("lists every error code", () => {
    const listed = valueAt(document, "components.schemas.Error.properties.error.properties.code.enum");
    expect(listed).to.have.members(Object.keys(errorCodes));
  });

  it("is a page for people too, that loads nothing from elsewhere and runs no script", async () => {
    const { status, headers, text } = await client.get("/docs");
    expect(status).to.equal(200);
    expect(headers.get("content-type")).to.equal("text/html; charset=utf-8");
    for (const route of allRoutes) expect(text).to.contain(route.path.replace(/:(\w+)/g, "{$1}"));
    expect(text).not.to.match(/<script|src=|https?:\/\/(?!json-schema|desk\.example\.com)/);
    expect(headers.get("content-security-policy")).to.contain("default-src 'none'");
  });
});
