import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const later = { headers: { prefer: "respond-async" } };
const DAY_MS = 86_400_000;

describe("the list of jobs", () => {
  let test: TestPlatform;
  let [member, owner]: ApiClient[] = [];
  let agents: string[] = [];
  let workflowId = "";
  const ids = async (client: ApiClient | undefined, query: string) => {
    const page = await client?.get(`/jobs?${query}`);
    expect(page?.status, page?.text).to.equal(200);
    return ((page?.at("data") ?? []) as { jobId: string }[]).map(({ jobId }) => jobId); // the client has checked its schema
  };
  const jobs: string[] = [];
  before(async () => {
    test = await startPlatform({ workers: false });
    [member, owner] = [test.keys.member, test.keys.owner].map((key) => makeClient({ url: test.url, key }));
    const post = async (client: ApiClient | undefined, path: string, body: object) => {
      const answer = await client?.post(path, body, later);
      expect(answer?.status, answer?.text).to.be.within(200, 202);
      return answer?.body as Record<string, string>; // as its schema says
    };
    const makeAgent = (name: string) => post(member, "/agents", { name, model: "meta-llm", systemPrompt: "Answer." });
    agents = [await makeAgent("Desk"), await makeAgent("Bench")].map(({ agentId = "" }) => agentId);
    const steps = [{ id: "add", type: "human_approval", assigneeRole: "admin", message: "Pay 120 EUR?" }];
    ({ workflowId = "" } = await post(member, "/workflows", { name: "Complaint", steps }));
    for (const [at, input] of ["\n  The Pump is loud.\nSince May.", "Why?"].entries())
      jobs.push((await post(member, `/agents/${agents[at]}/run`, { input })).jobId ?? "");
    const body = { input: { text: "The valve leaks.", days: 3, all: { nested: true } } };
    jobs.push((await post(owner, `/workflows/${workflowId}/execute`, body)).jobId ?? "");
    const secret = { pattern: "consensus", profile: "healthcare", input: "What of the bone?", models: ["meta-llm"] };
    jobs.push((await post(owner, "/composite/execute", secret)).jobId ?? "");
  });
  after(() => test.close());

  it("shows the first line of what each was given, and nothing of a regulated one", async () => {
    const { at } = (await member?.get("/jobs")) ?? { at: () => [] };
    const inputs = (at("data") as { input?: string }[]).map(({ input }) => input);
    const line = "text: The valve leaks., days: 3, all: …";
    expect(inputs).to.deep.equal([undefined, line, "Why?", "The Pump is loud."]);
  });

  it("is of one agent, workflow, person or key", async () => {
    expect(await ids(member, `agentId=${agents[0]}`)).to.deep.equal([jobs[0]]);
    expect(await ids(member, `workflowId=${workflowId}`)).to.deep.equal([jobs[2]]);
    expect(await ids(member, "startedBy=member@test")).to.deep.equal([jobs[1], jobs[0]]);
    const { keyId } = (((await owner?.get("/jobs?limit=1"))?.at("data") ?? []) as { keyId: string }[])[0] ?? {};
    expect(await ids(member, `keyId=${keyId}`)).to.deep.equal([jobs[3], jobs[2]]);
    expect(await ids(member, `keyId=${keyId}&agentId=${agents[0]}`)).to.deep.equal([]);
  });

  it("has those with a text in the title or the input, whatever the case of its letters", async () => {
    expect(await ids(member, "q=pump IS")).to.deep.equal([jobs[0]]);
    expect(await ids(member, "q=complaint")).to.deep.equal([jobs[2]]);
    expect(await ids(member, "q=desk&kind=agent&status=queued")).to.deep.equal([jobs[0]]);
    expect(await ids(member, "q=nowhere")).to.deep.equal([]);
    expect(await ids(member, "q=.*")).to.deep.equal([]);
  });

  it("is of a span of time, page by page", async () => {
    const [before, after] = [-DAY_MS, DAY_MS].map((ms) => new Date(Date.now() + ms).toISOString());
    expect(await ids(member, `from=${before}&to=${after}`)).to.have.length(4);
    expect(await ids(member, `to=${before}`)).to.deep.equal([]);
    expect(await ids(member, `from=${after}`)).to.deep.equal([]);
    expect(await ids(member, `from=${before}&to=${after}&limit=2&cursor=${jobs[2]}`)).to.deep.equal([jobs[1], jobs[0]]);
  });

  describe("of a collection", () => {
    let limited: ApiClient;
    let other: string[] = [];
    let ownJob = "";
    const ingest = async (client: ApiClient | undefined, body: object) => {
      const answer = await client?.post("/rag/ingest", { content: "The seal is made of rubber.", ...body }, later);
      expect(answer?.status, answer?.text).to.equal(202);
      return answer?.string("jobId") ?? "";
    };
    before(async () => {
      const about = { role: "member", subject: "reader@test", collections: ["seals"] };
      limited = makeClient({ url: test.url, key: (await owner?.post("/keys", about))?.string("key") ?? "" });
      other = [
        await ingest(member, { collection: "seals" }),
        await ingest(owner, { collection: "seals", title: "Ring" }),
      ];
      ownJob = await ingest(limited, {}); // the only collection of its key
      await ingest(member, {});
    });

    it("has the jobs on its documents alone, beside the other filters", async () => {
      const all = [ownJob, ...other.toReversed()];
      expect(await ids(member, "collection=seals")).to.deep.equal(all);
      expect(await ids(member, "collection=seals&kind=ingestion&q=ring")).to.deep.equal([other[1]]);
      expect(await ids(member, "collection=seals&startedBy=member@test")).to.deep.equal([other[0]]);
      expect(await ids(member, `collection=seals&limit=2&cursor=${other[1]}`)).to.deep.equal([other[0]]);
      expect(await ids(member, "collection=default")).to.have.length(1);
      expect(await ids(member, "collection=nowhere")).to.deep.equal([]);
    });

    it("has the jobs on one document, also for a key that started some of them", async () => {
      const { documentId = "" } = ((await member?.get(`/jobs/${ownJob}`))?.at("about") ?? {}) as Record<string, string>;
      const replaced = await ingest(owner, { documentId });
      expect(await ids(member, `documentId=${documentId}`)).to.deep.equal([replaced, ownJob]);
      expect(await ids(limited, `documentId=${documentId}`)).to.deep.equal([ownJob]);
      expect(await ids(member, `documentId=${documentId}&kind=agent`)).to.deep.equal([]);
      expect(await ids(member, "documentId=doc_01J00000000000000000000000")).to.deep.equal([]);
      expect((await member?.get("/jobs?documentId=none"))?.at("error.param")).to.equal("documentId");
    });

    it("names it in what each is about, and in the 202", async () => {
      const { at } = (await member?.get(`/jobs/${ownJob}`)) ?? { at: () => undefined };
      expect(at("about")).to.include({ collection: "seals" });
      const body = { url: "https://docs.example/ring", collection: "seals" };
      const accepted = await member?.post("/rag/ingest", body, later);
      expect(accepted?.at("collection")).to.equal("seals");
      await member?.post(`/jobs/${accepted?.string("jobId")}/cancel`, {});
      const again = await member?.post(`/jobs/${accepted?.string("jobId")}/retry`, {});
      expect(again?.status, again?.text).to.equal(202);
      expect((await ids(member, "collection=seals"))[0], "a retry is one of them").to.equal(again?.at("jobId"));
    });

    it("shows a limited key its own, and refuses a collection that is not its own", async () => {
      expect(await ids(limited, "collection=seals")).to.deep.equal([ownJob]);
      for (const answer of [
        await limited.get("/jobs?collection=default"),
        await limited.post("/jobs/cancel", { collection: "default" }),
      ])
        expect([answer.status, answer.at("error.code")]).to.deep.equal([403, "insufficient_scope"]);
    });

    it("are cancelled and repeated together", async () => {
      const count = (await ids(member, "collection=seals&status=queued")).length;
      const { at } = (await member?.post("/jobs/cancel", { collection: "seals" })) ?? { at: () => undefined };
      expect([at("done"), at("hasMore")]).to.deep.equal([count, false]);
      expect(await ids(member, "collection=seals&status=queued")).to.deep.equal([]);
      expect(await ids(member, "collection=default&status=queued")).to.have.length(1);
      const again = await member?.post("/jobs/retry", { collection: "seals", status: "cancelled" });
      expect(again?.at("done")).to.be.at.least(3);
    });
  });

  it("shows a key that is limited to collections its own alone, whatever it asks for", async () => {
    const about = { role: "member", subject: "limited@test", collections: ["manuals"] };
    const made = await owner?.post("/keys", about);
    const limited = makeClient({ url: test.url, key: made?.string("key") ?? "" });
    for (const query of ["", `agentId=${agents[0]}`, "startedBy=member@test", "q=pump"])
      expect(await ids(limited, query), query).to.deep.equal([]);
    const { keyId } = (((await owner?.get("/jobs?limit=1"))?.at("data") ?? []) as { keyId: string }[])[0] ?? {};
    expect(await ids(limited, `keyId=${keyId}`)).to.deep.equal([]);
  });

  it("is what is cancelled and repeated together, by the same filter", async () => {
    const now = new Date().toISOString();
    const filters = [
      [{ agentId: agents[1], to: now, startedBy: "owner@test" }, 0],
      [{ agentId: agents[1], from: now }, 0],
      [{ agentId: agents[1], to: now, startedBy: "member@test" }, 1],
      [{ workflowId, kind: "agent" }, 0],
    ] as const;
    for (const [filter, done] of filters) {
      const cancelled = await member?.post("/jobs/cancel", filter);
      expect([cancelled?.status, cancelled?.at("done")], cancelled?.text).to.deep.equal([200, done]);
    }
    expect(await ids(member, "kind=agent&status=cancelled")).to.deep.equal([jobs[1]]);
    expect(await ids(member, "kind=workflow&status=cancelled")).to.deep.equal([]);
    const again = await member?.post("/jobs/retry", { agentId: agents[1] });
    expect(again?.at("done"), again?.text).to.equal(1);
    for (const wrong of [{ q: "pump" }, { from: "yesterday" }, { agentid: agents[0] }])
      expect((await member?.post("/jobs/cancel", wrong))?.status, JSON.stringify(wrong)).to.equal(400);
  });

  for (const query of [
    "agentId=desk",
    "from=yesterday",
    "q=",
    `q=${"x".repeat(201)}`,
    "agentid=x",
    "startedBy=",
    "collection=a b",
  ])
    it(`refuses ${query.slice(0, 20)}`, async () => {
      expect((await member?.get(`/jobs?${query}`))?.status).to.equal(400);
    });
});
