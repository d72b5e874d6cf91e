import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

type Result = { content: string; documentId: string };

describe("collections of documents", () => {
  let platform: TestPlatform;
  let owner: ApiClient;
  /** Of a key that may use the collection `pumps` alone. */
  let limited: ApiClient;
  let ids: Record<"pumps" | "cranes" | "default", string>;

  const clientOf = async (body: object) => {
    const made = await owner.post("/keys", body);
    expect(made.status, made.text).to.equal(201);
    return makeClient({ url: platform.url, key: made.string("key") });
  };
  const find = async (client: ApiClient, query: object) => {
    const found = await client.post("/rag/query", { query: "valve pressure", topK: 20, ...query });
    expect(found.status, found.text).to.equal(200);
    return (found.at("results") as Result[]).map(({ documentId }) => documentId).sort();
  };
  const ingest = async (content: string, more: object = {}) => {
    const made = await owner.post("/rag/ingest", { content, ...more });
    expect(made.status, made.text).to.equal(201);
    return made.string("documentId");
  };

  before(async () => {
    platform = await startPlatform();
    owner = makeClient({ url: platform.url, key: platform.keys.owner });
    ids = {
      default: await ingest("The valve of the boiler holds a pressure of six bar."),
      pumps: await ingest("The valve of the pump holds a pressure of nine bar.", { collection: "pumps" }),
      cranes: await ingest("The valve of the crane holds a pressure of two bar.", { collection: "cranes" }),
    };
    limited = await clientOf({ collections: ["pumps"], subject: "limited@test" });
  });
  after(() => platform.close());

  for (const mode of ["vector", "lexical", "hybrid"]) {
    it(`are searched alone, several together, or all, in ${mode} mode`, async () => {
      const { pumps, cranes } = ids;
      expect(await find(owner, { mode })).to.deep.equal(Object.values(ids).sort());
      expect(await find(owner, { mode, collection: "pumps" })).to.deep.equal([pumps]);
      expect(await find(owner, { mode, collection: "default" })).to.deep.equal([ids.default]);
      expect(await find(owner, { mode, collection: ["cranes", "pumps"] })).to.deep.equal([pumps, cranes].sort());
      expect(await find(owner, { mode, collection: ["cranes", "default"] })).to.deep.equal(
        [ids.default, cranes].sort(),
      );
      expect(await find(owner, { mode, collection: "pumps", documentIds: [cranes] })).to.deep.equal([]);
    });
  }

  it("are on documents, and in the list of one collection", async () => {
    expect((await owner.get(`/rag/documents/${ids.pumps}`)).at("collection")).to.equal("pumps");
    expect((await owner.get(`/rag/documents/${ids.default}`)).at("collection")).to.equal("default");
    for (const [collection, id] of Object.entries(ids)) {
      const list = await owner.get(`/rag/documents?collection=${collection}`);
      expect((list.body as Result[]).map(({ documentId }) => documentId)).to.deep.equal([id]);
      expect(list.headers.get("x-total-count")).to.equal("1");
    }
  });

  it("come from a form, too", async () => {
    const form = new FormData();
    form.set("collection", "forms");
    form.set("file", new File(["A lever."], "lever.txt"));
    const made = await owner.request("POST", "/rag/ingest", { raw: form });
    expect((await owner.get(`/rag/documents/${made.string("documentId")}`)).at("collection")).to.equal("forms");
  });

  for (const name of ["", "a b", "ä", "x".repeat(65), "../x", 7, []]) {
    it(`have no name like ${JSON.stringify(name)}`, async () => {
      const made = await owner.post("/rag/ingest", { content: "x", collection: name });
      expect([made.status, made.at("error.param")]).to.deep.equal([400, "collection"]);
      expect((await owner.post("/rag/query", { query: "x", collection: name })).status).to.equal(400);
    });
  }

  describe("that a key is limited to", () => {
    for (const mode of ["vector", "lexical", "hybrid"]) {
      it(`are the only ones in which its queries find documents, in ${mode} mode`, async () => {
        expect(await find(limited, { mode })).to.deep.equal([ids.pumps]);
        expect(await find(limited, { mode, documentIds: Object.values(ids) })).to.deep.equal([ids.pumps]);
      });
    }

    it("are the only ones that it may name", async () => {
      for (const collection of ["cranes", ["pumps", "default"]]) {
        const found = await limited.post("/rag/query", { query: "valve", collection });
        expect([found.status, found.at("error.code")]).to.deep.equal([403, "insufficient_scope"]);
        expect((await limited.post("/rag/ingest", { content: "x", collection: "cranes" })).status).to.equal(403);
      }
      expect((await limited.get("/rag/documents?collection=cranes")).status).to.equal(403);
    });

    it("contain every document that it can list, read and delete", async () => {
      const list = await limited.get("/rag/documents");
      expect((list.body as Result[]).map(({ documentId }) => documentId)).to.deep.equal([ids.pumps]);
      expect(list.headers.get("x-total-count")).to.equal("1");
      expect((await limited.get(`/rag/documents/${ids.pumps}/chunks`)).status).to.equal(200);
      for (const id of [ids.cranes, ids.default]) {
        expect((await limited.get(`/rag/documents/${id}`)).status).to.equal(404);
        expect((await limited.get(`/rag/documents/${id}/chunks`)).status).to.equal(404);
        expect((await limited.delete(`/rag/documents/${id}`)).status).to.equal(404);
        expect((await owner.get(`/rag/documents/${id}`)).status).to.equal(200);
      }
    });

    it("ingests into its collection, and `duplicateOf` stays inside it", async () => {
      const made = await limited.post("/rag/ingest", {
        content: "The valve of the crane holds a pressure of two bar.",
      });
      expect(made.status, made.text).to.equal(201);
      expect(made.body).not.to.have.property("duplicateOf");
      const id = made.string("documentId");
      expect((await owner.get(`/rag/documents/${id}`)).at("collection")).to.equal("pumps");
      expect((await limited.delete(`/rag/documents/${id}`)).status).to.equal(204);
    });

    it("are the only ones that an agent's tool searches in its runs", async () => {
      const tools = [{ type: "rag_query", config: { topK: 20 } }];
      const agent = { name: "Valves", model: "meta-llm", systemPrompt: "Search the documents.", tools };
      const path = `/agents/${(await owner.post("/agents", agent)).string("agentId")}`;
      for (const [client, seen] of [
        [limited, ["pumps"]],
        [owner, ["default", "pumps", "cranes"]],
      ] as const) {
        const run = await client.post(`${path}/run`, { input: "What pressure does the valve hold?" });
        const { text } = await client.get(`${path}/runs/${run.string("runId")}`);
        for (const [name, id] of Object.entries(ids)) {
          expect(text.includes(id), `${name}: ${text}`).to.equal((seen as readonly string[]).includes(name));
        }
      }
    });

    it("are the only ones that a workflow's step searches in its runs, and a step that names another is refused", async () => {
      const run = async (client: ApiClient, step: object) => {
        const steps = [{ type: "rag_query", query: "valve pressure", ...step }];
        const path = `/workflows/${(await owner.post("/workflows", { name: "Valves", steps })).string("workflowId")}`;
        const { text } = await client.post(`${path}/execute`, {}, { headers: { prefer: "wait=30" } });
        return Object.entries(ids).flatMap(([name, id]) => (text.includes(id) ? [name] : []));
      };
      expect(await run(owner, {})).to.have.members(["default", "pumps", "cranes"]);
      expect(await run(owner, { collection: "cranes" })).to.deep.equal(["cranes"]);
      expect(await run(limited, {})).to.deep.equal(["pumps"]);
      expect(await run(limited, { collection: "cranes" })).to.deep.equal([]);
    });

    it("are the only ones that the MCP tool searches", async () => {
      const params = { name: "svc_rag_query", arguments: { query: "valve pressure", topK: 20 } };
      const { text } = await limited.post("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params });
      expect(text).to.contain(ids.pumps).and.not.to.contain(ids.cranes).and.not.to.contain(ids.default);
    });

    it("also limit the keys that it makes and its sessions", async () => {
      const limitedOwner = await clientOf({ role: "owner", collections: ["pumps", "cranes"] });
      for (const collections of [["default"], ["pumps", "default"]]) {
        expect((await limitedOwner.post("/keys", { collections })).status).to.equal(403);
      }
      const heir = await limitedOwner.post("/keys", {});
      expect(heir.at("collections")).to.deep.equal(["pumps", "cranes"]);
      const client = makeClient({ url: platform.url, key: heir.string("key") });
      expect(await find(client, {})).to.deep.equal([ids.pumps, ids.cranes].sort());
      const ambiguous = await client.post("/rag/ingest", { content: "x" });
      expect([ambiguous.status, ambiguous.at("error.param")]).to.deep.equal([400, "collection"]);
    });

    it("also limit repeats of its calls, even for another key of the same subject", async () => {
      const headers = { "idempotency-key": "twice" };
      const body = { query: "valve pressure", topK: 20 };
      const wide = await clientOf({ subject: "limited@test" });
      expect((await wide.post("/rag/query", body, { headers })).text).to.contain(ids.cranes);
      expect((await limited.post("/rag/query", body, { headers })).text).not.to.contain(ids.cranes);
    });
  });
});
