import { expect } from "chai";
import { type EmbeddingServer, startEmbeddingServer, toCustomProvider } from "../support/embedding-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const offline = "switchyard-offline-embedding";
const texts: Record<string, string> = {
  [offline]: "The lighthouse keeper trims the wick at dusk.",
  "lab/dense-256": "Marmots whistle when an eagle circles above the scree.",
  "lab/dense-1024": "A cooper bends oak staves over a small fire.",
  "lab/other-256": "The glacier calves into a fjord of green water.",
};

describe("documents of several embedding models", () => {
  let server: EmbeddingServer;
  let test: TestPlatform;
  let admin: ApiClient;
  let member: ApiClient;
  const documentOf = new Map<string, string>();

  const put = (client: ApiClient, path: string, body: object) => client.request("PUT", path, { body });
  const setModel = (embeddingModel: string | null) => put(admin, "/rag/settings", { embeddingModel });
  const ingest = async (content: string, title: string) => {
    const answer = await member.post("/rag/ingest", { content, title });
    expect(answer.status, answer.text).to.equal(201);
    return answer.string("documentId");
  };
  const query = async (body: object) => {
    const found = await member.post("/rag/query", body);
    expect(found.status, found.text).to.equal(200);
    return found.body as { results: { documentId: string; similarity: number }[]; warnings?: string[] };
  };
  const provider = (models: readonly string[]) => toCustomProvider(server, models);

  before(async () => {
    server = await startEmbeddingServer();
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: new URL(server.url).origin } });
    admin = makeClient({ url: test.url, key: test.keys.admin });
    member = makeClient({ url: test.url, key: test.keys.member });
    const added = await put(
      admin,
      "/ai/providers/custom/lab",
      provider(["dense-256", "dense-1024", "other-256", "dense-1536", "broken-64"]),
    );
    expect(added.status, added.text).to.be.oneOf([200, 201]);
    for (const [model, text] of Object.entries(texts)) {
      const set = await setModel(model);
      expect(set.status, set.text).to.equal(200);
      documentOf.set(model, await ingest(text, `of ${model}`));
    }
  });
  after(async () => {
    await test.close();
    await server.close();
  });

  it("each know their model and dimensions, and the settings say how many are on which", async () => {
    const shown = await member.get(`/rag/documents/${documentOf.get("lab/dense-1024")}`);
    expect(shown.body).to.include({ embeddingModel: "lab/dense-1024", dimensions: 1_024 });
    const { body } = await admin.get("/rag/settings");
    expect(body).to.deep.equal({
      embeddingModel: "lab/other-256",
      models: [
        { model: "lab/dense-1024", dimensions: 1_024, documents: 1, isPresent: false },
        { model: "lab/dense-256", dimensions: 256, documents: 1, isPresent: false },
        { model: "lab/other-256", dimensions: 256, documents: 1, isPresent: true },
        { model: offline, dimensions: 512, documents: 1, isPresent: false },
      ],
    });
  });

  it("are all found by meaning, each by vectors of its own model, and a query is embedded once a model", async () => {
    server.answered.length = 0;
    for (const mode of ["vector", "hybrid", "lexical"]) {
      for (const [model, text] of Object.entries(texts)) {
        const { results, warnings } = await query({ query: text, mode });
        const own = results.find(({ documentId }) => documentId === documentOf.get(model));
        expect(own?.similarity, `${model}, ${mode}`).to.be.closeTo(1, 1e-3);
        if (mode !== "lexical") expect(results, mode).to.have.lengthOf(4);
        expect(warnings).to.equal(undefined);
      }
    }
    expect(server.answered).to.have.lengthOf(3 * 4); // three models, four texts; the other modes know the vectors
  });

  it("are found by words alone while their model fails, which is asked once a query, and the answer says so", async () => {
    let asked = 0;
    server.onRequest(({ model }) => {
      if (model !== "dense-1024") return undefined;
      asked += 1;
      return 401;
    });
    const { results, warnings } = await query({ query: "Which cooper bends oak staves?" });
    expect(results[0]).to.include({ documentId: documentOf.get("lab/dense-1024"), similarity: 0 });
    expect(warnings?.[0]).to.match(
      /^Documents that lab\/dense-1024 embedded in 1024 dimensions are found by their words/,
    );
    expect(asked).to.equal(1);
    server.onRequest(() => undefined);
  });

  it("may be of four models: a fifth is refused, and a return to one of the four is allowed", async () => {
    const fifth = await setModel("lab/dense-1536");
    expect([fifth.status, fifth.at("error.code"), fifth.at("error.param")]).to.deep.equal([
      409,
      "wrong_state",
      "embeddingModel",
    ]);
    expect((await setModel("lab/dense-256")).status).to.equal(200);
    expect((await setModel(null)).at("embeddingModel")).to.equal(offline);
  });

  it("are embedded by the platform's model in another tenant, which sees none of this", async () => {
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    expect((await stranger.get("/rag/settings")).body).to.deep.equal({ embeddingModel: offline, models: [] });
    const refused = await put(stranger, "/rag/settings", { embeddingModel: "lab/dense-256" });
    expect([refused.status, refused.at("error.code")]).to.deep.equal([400, "unknown_model"]);
  });

  it("cannot be embedded by a model that is unknown, does not embed or has no key, and a member cannot choose one", async () => {
    const refusals = {
      "no-such": "unknown_model",
      "meta-llm": "unknown_model",
      "text-embedding-3-small": "provider_not_configured",
    };
    for (const [model, code] of Object.entries(refusals)) {
      const refused = await setModel(model);
      expect([refused.status, refused.at("error.code"), refused.at("error.param")], model).to.deep.equal([
        400,
        code,
        "embeddingModel",
      ]);
    }
    expect((await put(member, "/rag/settings", { embeddingModel: null })).status).to.equal(403);
    expect((await member.get("/rag/settings")).status).to.equal(403);
  });

  it("cost each embedding once, in the ledger", async () => {
    const wanted = server.answered.length;
    await pollUntil(async () => {
      const { data } = (await member.get("/usage?groupBy=model")).body as {
        data: { model: string; requests: number }[];
      };
      const counted = data.filter(({ model }) => model.startsWith("lab/")).reduce((sum, one) => sum + one.requests, 0);
      return counted >= wanted;
    });
  });
});
