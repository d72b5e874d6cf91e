import { Session } from "node:inspector/promises";
import { expect } from "chai";
import { chatModel as model, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

/** What one request enters: files of the product, and functions in them. */
type Walk = { files: number; functions: number };

/** A ratchet: lower a ceiling when a change allows it, and never raise one. Five in a hundred are for what runs beside a request. */
const ceilings: Record<string, Walk> = {
  "GET /agents": { files: 39, functions: 90 },
  "POST /ai/chat": { files: 81, functions: 274 },
  "POST /v1/chat/completions": { files: 83, functions: 278 },
  "POST /v1/responses": { files: 103, functions: 338 },
  "POST /v1/messages": { files: 88, functions: 290 },
  "POST /rag/ingest": { files: 118, functions: 446 },
  "POST /rag/query": { files: 88, functions: 320 },
  "POST /agents/:id/run": { files: 122, functions: 483 },
  "POST /composite/execute": { files: 116, functions: 440 },
  "POST /workflows/:id/execute": { files: 134, functions: 579 },
};

/** Each request by the name of its ceiling. It ends with its job, so that the worker's part is counted. */
async function toRequests({
  member,
  run,
}: WorkflowHarness): Promise<Record<string, () => Promise<{ status: number }>>> {
  const agentId = (await member.post("/agents", { name: "Walker", systemPrompt: "Answer.", model })).string("agentId");
  const steps = [
    { type: "ai_completion", id: "first", model, prompt: "Hello" },
    // biome-ignore lint/suspicious/noThenProperty: the interface names it so, and it is no function
    { type: "condition", id: "second", expression: "true", then: [] },
    { type: "ai_completion", id: "third", model, prompt: "{{ steps.first.text }}" },
  ];
  let count = 0;
  const next = () => {
    count += 1;
    return count;
  };
  const messages = () => [{ role: "user", content: `Say ok ${next()}.` }];
  return {
    "GET /agents": () => member.get("/agents"),
    "POST /ai/chat": () => member.post("/ai/chat", { model, messages: messages() }),
    "POST /v1/chat/completions": () => member.post("/v1/chat/completions", { model, messages: messages() }),
    "POST /v1/responses": () => member.post("/v1/responses", { model, input: messages() }),
    "POST /v1/messages": () => member.post("/v1/messages", { model, messages: messages(), max_tokens: 100 }),
    "POST /rag/ingest": () => member.post("/rag/ingest", { content: `Pump ${next()} has a valve.`, title: "Pump" }),
    "POST /rag/query": () => member.post("/rag/query", { query: `Which valve has pump ${next()}?` }),
    "POST /agents/:id/run": () => member.post(`/agents/${agentId}/run`, { input: "Well?" }),
    "POST /composite/execute": () => {
      const body = { pattern: "chain-of-thought", profile: "coding", input: "Why?", models: [model] };
      return member.post("/composite/execute", body);
    },
    "POST /workflows/:id/execute": () => run(steps),
  };
}

describe("the way of one request through the product", function () {
  this.timeout(120_000);
  let harness: WorkflowHarness;
  let session: Session;
  before(async () => {
    harness = await openWorkflowHarness({ env: { RECONCILE_EVERY_MS: "600000" } });
    session = new Session();
    session.connect();
    await session.post("Profiler.enable");
  });
  after(async () => {
    session.disconnect();
    await harness.close();
  });

  async function walk(request: () => Promise<{ status: number }>): Promise<Walk> {
    await harness.test.platform.gateway.flush(); // so that what the call before left to write is not counted to this one
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    await session.post("Profiler.takePreciseCoverage"); // sets the counts to zero
    expect((await request()).status).to.be.oneOf([200, 201]);
    const { result } = await session.post("Profiler.takePreciseCoverage");
    await session.post("Profiler.stopPreciseCoverage");
    const entered = result
      .filter(({ url }) => /\/(?:src|api|workers)\//.test(url) && !/\/(?:node_modules|test)\//.test(url))
      .map(({ functions }) => functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0).length)
      .filter((count) => count > 0);
    return { files: entered.length, functions: entered.reduce((sum, count) => sum + count, 0) };
  }

  it("enters at most as many files and functions as its ceiling says", async () => {
    const walks: Record<string, Walk> = {};
    for (const [name, request] of Object.entries(await toRequests(harness))) {
      await request(); // loads what is loaded once
      const all = [await walk(request), await walk(request), await walk(request)];
      walks[name] = {
        files: Math.min(...all.map(({ files }) => files)),
        functions: Math.min(...all.map(({ functions }) => functions)),
      };
    }
    const above = Object.entries(walks).filter(([name, { files, functions }]) => {
      const ceiling = ceilings[name];
      return !ceiling || files > ceiling.files || functions > ceiling.functions;
    });
    expect(above, JSON.stringify(walks, null, 1)).to.deep.equal([]);
  });
});
