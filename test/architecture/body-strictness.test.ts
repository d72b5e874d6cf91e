import { expect } from "chai";
import type { z } from "zod";
import { allRoutes } from "../../api/all-routes.ts";
import { defOf, opennessOf } from "../../api/middleware/unknown-fields.ts";
import { readingOf } from "../../src/lib/limiting.ts";

/** The bodies that grant or limit as a whole: an unknown field, at any depth, is a 400. */
const grants = new Set([
  "put /ai/fallbacks",
  "put /ai/providers/custom/:name",
  "put /ai/providers/:provider/key",
  "post /ai/providers/:provider/rotate",
  "post /ai/widget/key",
  "delete /ai/widget/key",
  "put /budget",
  "put /guards",
  "post /guards/check",
  "put /rag/settings",
  "put /settings",
  "post /rag/tools",
  "put /rag/tools/:id",
  "post /keys",
  "post /schedules",
  "put /schedules/:id",
  "post /events/:name",
  "post /triggers",
  "put /triggers/:id",
  "post /event-sources",
  "post /webhooks",
  "post /jobs/cancel",
  "post /jobs/retry",
  "put /webhooks/:id",
  "post /operator/tenants",
  "put /operator/tenants/:tenantId/budget",
  "post /operator/tenants/:tenantId/keys",
  "put /operator/queues/:queue",
]);

/** The fields of other bodies that grant or limit: objects in them are strict at any depth. */
const grantingFields = new Set([
  "budget",
  "callback",
  "expires_after",
  "filters",
  "output_expires_after",
  "publish",
  "rerank",
  "steps",
  "tools",
]);

/** Fields of these names, in these bodies, that hold what a model is sent, and grant nothing. */
const vendors =
  /^post \/(ai\/chat|v1\/(chat\/completions|responses|responses\/compact|responses\/input_tokens|messages|messages\/count_tokens|messages\/batches|conversations|conversations\/:id\/items))$/;

/** Fields that limit, and stand in bodies that take unknown fields: they are marked. */
const limits: Record<string, string[]> = {
  "post /v1/files": ["expires_after"],
  "post /v1/batches": ["output_expires_after"],
  "post /rag/query": ["collection", "documentIds", "filter", "minCoverage", "minScore"],
  "post /rag/answer": ["collection", "documentIds", "filter", "minCoverage"],
  "post /rag/ingest": ["collection", "expiresAt"],
  "patch /rag/documents/:id": ["expiresAt"],
  "post /agents": ["maxTokens"],
  "put /agents/:id": ["maxTokens"],
  "post /agents/:id/run": ["budget"],
  "post /workflows": ["inputSchema"],
  "put /workflows/:id": ["inputSchema"],
  "post /workflows/dry-run": ["inputSchema"],
};

type Found = { path: string; openness: string; marked: string[] };

/** Every object schema of a body, with where it stands and what becomes of fields that it does not know. */
function* objectsOf(schema: z.ZodType | undefined, path = "", seen: readonly z.ZodType[] = []): Generator<Found> {
  if (!schema || seen.includes(schema)) return;
  const def = defOf(schema);
  const inside = [...seen, schema];
  if (def.type === "object") {
    const fields = Object.entries(def.shape ?? {});
    const marked = fields.filter(([, field]) => readingOf(field)).map(([name]) => name);
    yield { path, openness: opennessOf(def), marked };
    for (const [name, field] of fields) yield* objectsOf(field, `${path}.${name}`, inside);
  }
  const inner = [def.in, def.out, def.innerType, def.left, def.right, ...(def.options ?? []), def.getter?.()];
  for (const one of inner) yield* objectsOf(one, path, inside);
  for (const one of [def.element, def.valueType]) yield* objectsOf(one, `${path}[]`, inside);
}

const bodies = allRoutes.flatMap(({ method, path, body, documentedBody, multipart }) =>
  [documentedBody ?? body, multipart].flatMap((schema) =>
    schema ? [{ call: `${method} ${path}`, objects: [...objectsOf(schema)] }] : [],
  ),
);

describe("every body of the product", () => {
  it("is in the table of those that grant or limit, or takes unknown fields", () => {
    expect(bodies.length).to.be.above(40);
    for (const { call, objects } of bodies) {
      const [whole] = objects;
      expect(whole?.openness === "strict", call).to.equal(grants.has(call));
    }
    expect(bodies.map(({ call }) => call)).to.include.members([...grants]);
  });

  it("is strict at every depth where it grants or limits", () => {
    for (const { call, objects } of bodies) {
      for (const { path, openness } of objects) {
        const isGranting =
          grants.has(call) || path.split(/[.[\]]+/).some((name) => grantingFields.has(name) && !vendors.test(call));
        if (!isGranting) continue;
        const isFirstLook = /^(\.workflow)?\.steps\[\]$/.test(path) && openness === "open"; // their types; the fields are looked at after
        expect(isFirstLook || openness === "strict", `${call} ${path}: ${openness}`).to.equal(true);
      }
    }
  });

  it("marks the fields that limit where it takes unknown ones", () => {
    for (const { call, objects } of bodies) {
      const lenient = objects.filter(({ openness }) => openness === "lenient");
      const marked = new Set(lenient.flatMap((each) => each.marked));
      expect([...marked].sort(), call).to.deep.equal(limits[call] ?? []);
    }
  });
});

describe("every list of the product", () => {
  it("refuses query parameters that it does not know", () => {
    const lists = allRoutes.filter(({ method, responses }) => method === "get" && isList(responses[200]?.body));
    expect(lists.length).to.be.above(25);
    for (const { path, query } of lists) {
      expect(query && opennessOf(defOf(query)), path).to.equal("strict");
    }
  });
});

/** Whether a response is a list: an array, or an object with one of the names that lists have. */
function isList(schema: z.ZodType | undefined): boolean {
  if (!schema) return false;
  const { type, shape = {}, options = [] } = defOf(schema);
  if (type === "union") return options.some(isList);
  return (
    type === "array" || (type === "object" && ["data", "fallbacks"].some((name) => name in shape)) || isModelList(shape)
  );
}

const isModelList = (shape: object) => Object.keys(shape).join() === "models";
