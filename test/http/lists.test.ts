import { expect } from "chai";
import { newId } from "../../src/lib/ids.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { condition } from "../support/workflow-harness.ts";

const later = { headers: { prefer: "respond-async" } };
/** Most bytes of a definition, as JSON. */
const largest = 256 * 1_024;
const description = `${"A".repeat(299)}😀${"B".repeat(1_699)}`;

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

/** A workflow whose definition has this many bytes. */
function workflowOf(bytes: number) {
  const step = { type: "ai_completion", model: "meta-llm", prompt: "p".repeat(190_000) };
  const steps = (prompt: string) => [condition("true", [step], []), { ...step, prompt }];
  const body = (prompt: string) => ({ name: "Large", description, steps: steps(prompt) });
  return body("p".repeat(bytes - bytesOf(body(""))));
}

/** An agent whose definition has this many bytes. */
function agentOf(bytes: number) {
  const tools = ["first", "second"].map((name) => ({ type: "rag_query", name, config: {} }));
  const fields = { name: "Large", description, model: "meta-llm", tools, maxIterations: 3 };
  const calculator = { type: "calculator", config: {} };
  const body = (systemPrompt: string) => ({ ...fields, tools: [...tools, calculator], systemPrompt });
  const left = bytes - bytesOf(body(""));
  return body(`${"機".repeat(Math.floor(left / 3))}${"p".repeat(left % 3)}`);
}

async function postMany(client: ApiClient, path: string, { body, count }: { body: object; count: number }) {
  const made: ApiResponse[] = [];
  for (let left = count; left > 0; left -= 4) {
    const some = Array.from({ length: Math.min(4, left) }, () => client.post(path, body, later));
    for (const answer of await Promise.all(some)) {
      expect(answer.status, answer.text.slice(0, 200)).to.be.within(200, 202);
      made.push(answer);
    }
  }
  return made;
}

type Item = Record<string, unknown>;

/** Every page of a list, by its cursors. */
async function walk(client: ApiClient, path: string): Promise<{ items: Item[]; pages: ApiResponse[] }> {
  const pages: ApiResponse[] = [];
  for (let cursor: unknown = ""; cursor !== null; cursor = pages.at(-1)?.at("nextCursor")) {
    pages.push(await client.get(`${path}${path.includes("?") ? "&" : "?"}${cursor && `cursor=${cursor}`}`));
  }
  return { pages, items: pages.flatMap((page) => page.at("data") as Item[]) }; // the client has checked its schema
}

describe("lists", function () {
  this.timeout(120_000);
  let test: TestPlatform;
  let member: ApiClient;
  let stranger: ApiClient;
  before(async () => {
    test = await startPlatform({ workers: false });
    [member, stranger] = [test.keys.member, test.keys.stranger].map((key) => makeClient({ url: test.url, key })) as [
      ApiClient,
      ApiClient,
    ]; // one a key
  });
  after(() => test.close());

  it("of workflows are short however large the workflows are, and the pages give each once", async () => {
    const made = await postMany(member, "/workflows", { body: workflowOf(largest), count: 60 });
    const first = await member.get("/workflows?limit=60");
    expect(first.at("data")).to.have.length(60);
    expect(first.text.length).to.be.below(60_000);
    const { items } = await walk(member, "/workflows?limit=25");
    expect(items.map(({ workflowId }) => workflowId)).to.have.members(made.map(({ at }) => at("workflowId")));
    expect(items[0]).to.have.all.keys(
      ...["workflowId", "name", "description", "stepCount", "version", "createdBy", "createdAt", "updatedAt"],
    );
    expect(items[0]).to.include({ name: "Large", description: `${"A".repeat(299)}…`, stepCount: 3, version: 1 });
    expect(first.at("data")).to.deep.equal(items);
    expect((await stranger.get("/workflows")).at("data")).to.deep.equal([]);
  });

  it("of a workflow's runs are short, although each run keeps its definition and input", async () => {
    const workflowId = (await member.post("/workflows", workflowOf(largest))).string("workflowId");
    const body = { input: "i".repeat(200_000) };
    const made = await postMany(member, `/workflows/${workflowId}/execute`, { body, count: 12 });
    const { items, pages } = await walk(member, `/workflows/${workflowId}/runs?limit=5`);
    expect(items.map(({ runId }) => runId)).to.have.members(made.map(({ at }) => at("runId")));
    for (const { text } of pages) expect(text.length).to.be.below(5_000);
    expect(new Set(items.map(({ status }) => status))).to.deep.equal(new Set(["queued"]));
  });

  it("of agents, and of their runs, are short too", async () => {
    const made = await postMany(member, "/agents", { body: agentOf(largest), count: 30 });
    const first = await member.get("/agents?limit=30");
    expect(first.text.length).to.be.below(30_000);
    const { items } = await walk(member, "/agents?limit=13");
    expect(items.map(({ agentId }) => agentId)).to.have.members(made.map(({ at }) => at("agentId")));
    const { agentId, createdBy, createdAt, updatedAt, ...shown } = items[0] ?? {};
    expect(shown).to.deep.equal({
      name: "Large",
      description: `${"A".repeat(299)}…`,
      model: "meta-llm",
      toolTypes: ["rag_query", "calculator"],
      status: "active",
      version: 1,
    });
    const body = { input: "i".repeat(200_000), sessionId: "desk" };
    const runs = await postMany(member, `/agents/${agentId}/run`, { body, count: 12 });
    const listed = await walk(member, `/agents/${agentId}/runs?limit=5&sessionId=desk`);
    expect(listed.items.map(({ runId }) => runId)).to.have.members(runs.map(({ at }) => at("runId")));
    for (const { text } of listed.pages) expect(text.length).to.be.below(6_000);
    const jobs = await walk(member, "/jobs?kind=agent&limit=5");
    expect(jobs.items.map(({ jobId }) => jobId)).to.have.members(runs.map(({ at }) => at("jobId")));
  });

  it("of documents end a page at about 2 MB, whatever limit was requested", async () => {
    const fields = Array.from({ length: 32 }, (_, n) => [`${n}`.padStart(64, "k"), "機".repeat(256)]);
    const body = { content: "Pump P-100.", metadata: Object.fromEntries(fields) };
    const made = await postMany(member, "/rag/ingest", { body, count: 120 });
    const ids: unknown[] = [];
    let [path, pages]: [string | undefined, number] = ["/rag/documents?status=queued&limit=200", 0];
    for (; path !== undefined; pages += 1) {
      const page: ApiResponse = await member.get(path);
      expect(Buffer.byteLength(page.text)).to.be.below(2_500_000);
      expect(page.headers.get("x-total-count")).to.equal("120");
      ids.push(...(page.body as Item[]).map(({ documentId }) => documentId)); // the client has checked its schema
      path = /<(.+)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1];
    }
    expect(pages).to.equal(2);
    expect(ids).to.have.members(made.map(({ at }) => at("documentId")));
  });

  it("give the total in a header if the body has no place for it", async () => {
    const ids = (await postMany(stranger, "/rag/ingest", { body: { content: "Pumps." }, count: 3 })).map(
      ({ at }) => at,
    );
    expect((await stranger.delete(`/rag/documents/${ids[0]?.("documentId")}`)).status).to.equal(204);
    for (const [query, total] of [
      ["?status=queued&limit=1", "2"],
      ["", "0"],
    ]) {
      const { headers } = await stranger.get(`/rag/documents${query}`);
      expect(headers.get("x-total-count"), query).to.equal(total);
    }
    const models = await stranger.get("/ai/models?provider=edge");
    expect(models.at("models")).to.have.length(Number(models.headers.get("x-total-count")));
  });

  it("of approvals end a page at about 2 MB", async () => {
    const tenantId = await tenantOf(test);
    const made = Array.from({ length: 100 }, () => newId("approval"));
    for (const _id of made) {
      await test.platform.store.approvals.ensure({
        ...{ _id, tenantId, workflowId: newId("workflow"), workflowName: "Large", runId: newId("workflowRun") },
        ...{ stepId: "step_1", path: "0", assigneeRole: "admin", status: "pending", message: "機".repeat(20_000) },
        ...{ createdAt: new Date(), expiresAt: new Date(Date.now() + 3_600_000) },
      });
    }
    const { items, pages } = await walk(member, "/workflows/approvals?limit=200");
    expect(items.map(({ approvalId }) => approvalId)).to.deep.equal(made.reverse());
    expect(pages).to.have.length(3);
    for (const { text } of pages) expect(Buffer.byteLength(text)).to.be.below(2_500_000);
  });

  it("show how many steps a workflow has, and no description once it is replaced without one", async () => {
    // biome-ignore lint/suspicious/noThenProperty: the interface names it so, and it is no function
    const inner = { type: "condition", expression: "true", then: [{ type: "rag_query", query: "Pumps" }] };
    const body = { name: "Described", steps: [inner], description: "First." };
    const workflowId = (await member.post("/workflows", body)).string("workflowId");
    for (const description of ["First.", "New.", undefined]) {
      await member.request("PUT", `/workflows/${workflowId}`, { body: { ...body, description } });
      const listed = await member.get("/workflows?limit=1");
      expect([listed.at("data[0].stepCount"), listed.at("data[0].description")]).to.deep.equal([2, description]);
    }
  });

  it("hold definitions of no more than 256 KiB", async () => {
    for (const [path, bodyOf, param] of [
      ["/workflows", workflowOf, "steps"],
      ["/agents", agentOf, "systemPrompt"],
    ] as const) {
      const taken = await member.post(path, bodyOf(largest));
      const id = taken.at("workflowId") ?? taken.at("agentId");
      expect(taken.status, path).to.equal(201);
      const refused = [
        await member.post(path, bodyOf(largest + 1)),
        await member.request("PUT", `${path}/${id}`, { body: bodyOf(largest + 1) }),
      ];
      for (const { status, at, string } of refused) {
        expect([status, at("error.param")], path).to.deep.equal([400, param]);
        expect(string("error.message")).to.include("262144 is the most");
      }
    }
    const headers = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`x-${n}`, "v".repeat(4_000)]));
    const tools = ["a", "b", "c"].map((name) => ({
      ...{ type: "http_request", name },
      config: { allowedHosts: ["acme.io"], headers },
    }));
    const refused = await member.post("/agents", { name: "Tools", model: "meta-llm", systemPrompt: "x", tools });
    expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "tools"]);
  });
});
