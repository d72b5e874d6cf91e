import { expect } from "chai";
import { allRoutes } from "../../api/all-routes.ts";
import { makeOpenApi } from "../../api/openapi.ts";
import { inSlices } from "../../src/lib/in-slices.ts";
import { valueAt } from "../support/http-client.ts";

/** The shape of every list; `total` is in it where all items are at hand. */
const usual = ["data", "nextCursor", "total"];
const paging = ["object", "first_id", "last_id", "has_more", ...usual.slice(1)];

/** Lists whose shape is another one, and what fixes it. Where it has no place for total and next page, headers have. */
const others: Record<string, { why: string; fields: string[]; headers: string[] }> = {
  "/rag/documents": { why: "the interface: a bare array", fields: ["[]"], headers: ["link", "x-total-count"] },
  "/ai/models": { why: "the interface", fields: ["models"], headers: ["x-total-count"] },
  "/ai/fallbacks": { why: "one setting, which PUT replaces as it stands", fields: ["fallbacks"], headers: [] },
  "/usage": {
    why: "a report: `total` is the sum of its rows",
    fields: ["from", "to", "groupBy", "data", "total", "budget", "quotas", "nextCursor"],
    headers: [],
  },
  "/v1/models": { why: "OpenAI's clients", fields: ["object", "data"], headers: [] },
  "/v1/files": { why: "OpenAI's clients", fields: ["object", "data", "has_more"], headers: [] },
  "/v1/messages/batches": {
    why: "Anthropic's clients",
    fields: ["data", "has_more", "first_id", "last_id"],
    headers: [],
  },
  "/v1/batches": {
    why: "OpenAI's clients",
    fields: ["object", "data", "first_id", "last_id", "has_more"],
    headers: [],
  },
  ...Object.fromEntries(
    ["", "/{id}/files", "/{id}/file_batches/{batchId}/files"].map((path) => [
      `/v1/vector_stores${path}`,
      { why: "OpenAI's clients", fields: ["object", "data", "first_id", "last_id", "has_more"], headers: [] },
    ]),
  ),
  "/v1/vector_stores/{id}/files/{fileId}/content": {
    why: "OpenAI's clients",
    fields: ["object", "data", "has_more", "next_page"],
    headers: [],
  },
  ...Object.fromEntries(
    ["responses/{id}/input_items", "conversations/{id}/items"].map((path) => [
      `/v1/${path}`,
      { why: "OpenAI's clients", fields: ["object", "data", "first_id", "last_id", "has_more"], headers: [] },
    ]),
  ),
};

type Schema = { anyOf?: Schema[]; $ref?: string; type?: string; properties?: Record<string, Schema> };

const document = await inSlices(makeOpenApi(allRoutes));

/** Every list of the OpenAPI document: its path, and the fields and headers of its response. */
function findLists() {
  const resolve = (schema: Schema | undefined): Schema =>
    schema?.$ref === undefined
      ? (schema ?? {})
      : (valueAt(document, schema.$ref.slice(2).replaceAll("/", ".")) as Schema); // another test resolves them all
  return Object.entries(document.paths).flatMap(([path, { get }]) => {
    const response = get?.responses["200"];
    const declared = resolve(valueAt(response, "content.application/json.schema") as Schema | undefined);
    const schema = resolve(declared.anyOf?.[0] ?? declared); // the others are what other vendors' clients get
    const properties = Object.entries(schema.properties ?? {});
    const arrays = properties.filter(([, field]) => resolve(field).type === "array").map(([name]) => name);
    const hasOnlyItems = properties.every(([name]) => arrays.includes(name) || paging.includes(name));
    const isPaged = (get?.parameters ?? []).some(({ name }) => name === "limit" || name === "cursor");
    const isList = schema.type === "array" || arrays.includes("data") || (arrays.length > 0 && hasOnlyItems);
    if (!isList && !isPaged) return [];
    const fields = schema.type === "array" ? ["[]"] : properties.map(([name]) => name);
    return [{ path, fields, headers: Object.keys((valueAt(response, "headers") ?? {}) as object) }];
  });
}

describe("every list of the OpenAPI document", () => {
  it("is { data, nextCursor, total? }, or one of the named exceptions", () => {
    const lists = findLists();
    expect(lists.length).to.be.above(15);
    for (const { path, fields, headers } of lists) {
      const { why, ...other } = others[path] ?? { why: "the usual shape", fields: usual, headers: [] };
      expect({ fields, headers }, `${path}: ${why}`).to.deep.equal(other);
    }
    expect(lists.map(({ path }) => path)).to.include.members(Object.keys(others));
  });
});
