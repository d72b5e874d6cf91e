import { Session } from "node:inspector/promises";
import { expect } from "chai";
import { chatModel as model, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

/** What one request enters: files of the product, and functions in them. */
type Walk = { files: number; functions: number };

/**
 * A ratchet: lower a ceiling when a change allows it, and never raise one. Traces that another test has begun would be counted, so
 * that `npm run test:long` begins with this file.
 */
const ceilings: Record<string, Walk> = {
  "GET /agents": { files: 37, functions: 90 },
  "POST /ai/chat": { files: 77, functions: 274 },
  "POST /v1/chat/completions": { files: 78, functions: 277 },
  "POST /v1/responses": { files: 99, functions: 338 },
  "POST /v1/messages": { files: 82, functions: 281 },
  "POST /rag/ingest": { files: 112, functions: 435 },
  "POST /rag/query": { files: 84, functions: 320 },
  "POST /agents/:id/run": { files: 117, functions: 482 },
  "POST /composite/execute": { files: 110, functions: 431 },
  "POST /workflows/:id/execute": { files: 132, functions: 579 },
};

/** Walks of one request that are compared: so many, and more while they are above the ceiling, since on a busy machine more runs beside them. */
const WALKS = 4;
const MAX_WALKS = 20;

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

  /** The functions that a request enters, by file and place in it. */
  async function walk(request: () => Promise<{ status: number }>): Promise<Set<string>> {
    await harness.test.platform.gateway.flush(); // so that what the call before left to write is not counted to this one
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    await session.post("Profiler.takePreciseCoverage"); // sets the counts to zero
    expect((await request()).status).to.be.oneOf([200, 201]);
    const { result } = await session.post("Profiler.takePreciseCoverage");
    await session.post("Profiler.stopPreciseCoverage");
    const ours = result.filter(
      ({ url }) => /\/(?:src|api|workers)\//.test(url) && !/\/(?:node_modules|test)\//.test(url),
    );
    return new Set(
      ours.flatMap(({ url, functions }) => {
        const entered = functions.flatMap(({ ranges: [whole] }) => (whole && whole.count > 0 ? [whole] : []));
        return entered.map(({ startOffset, endOffset }) => `${url} ${startOffset} ${endOffset}`);
      }),
    );
  }

  const sizeOf = (way: Set<string>): Walk => ({
    files: new Set([...way].map((place) => place.split(" ")[0])).size,
    functions: way.size,
  });
  const isAbove = (name: string, { files, functions }: Walk): boolean => {
    const ceiling = ceilings[name];
    return !ceiling || files > ceiling.files || functions > ceiling.functions;
  };

  it("enters at most as many files and functions as its ceiling says", async () => {
    const walks: Record<string, Walk> = {};
    for (const [name, request] of Object.entries(await toRequests(harness))) {
      await request(); // loads what is loaded once
      // What each of them enters is the way of the request; the rest is what runs beside it.
      let way = await walk(request);
      for (let walked = 1; walked < WALKS || (walked < MAX_WALKS && isAbove(name, sizeOf(way))); walked += 1) {
        const again = await walk(request);
        way = new Set([...way].filter((place) => again.has(place)));
      }
      walks[name] = sizeOf(way);
    }
    const above = Object.entries(walks).filter(([name, size]) => isAbove(name, size));
    expect(above, JSON.stringify(walks, null, 1)).to.deep.equal([]);
  });
});
