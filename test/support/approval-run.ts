import { expect } from "chai";
import { type AgentHarness, openAgentHarness } from "./agent-harness.ts";
import type { ApiResponse } from "./http-client.ts";
import { pollUntil } from "./poll-until.ts";

/** A call of a service that has effects, each noted with its idempotency key. */
export type Effect = { path: string; body: string; key: string | undefined };

/** An approval as the list shows it. */
export type ListedApproval = {
  approvalId: string;
  kind: string;
  runId: string;
  callId: string;
  toolName: string;
  arguments: Record<string, unknown>;
  argumentsHash: string;
};

export type ApprovalRuns = ReturnType<typeof makeApprovalRuns>;

/** Registers hooks that open the harness of a file's tests, with what they do with runs. Both are given to `take` before the first. */
export function useApprovalRuns(take: (opened: { harness: AgentHarness; runs: ApprovalRuns }) => void): void {
  let harness: AgentHarness | undefined;
  let effects: Effect[] = [];
  before("open the agent harness", async () => {
    harness = await openAgentHarness({ RECONCILE_EVERY_MS: "300" });
    const runs = makeApprovalRuns(harness);
    effects = runs.effects;
    take({ harness, runs });
  });
  after("close the agent harness", () => harness?.close());
  beforeEach("forget the effects", () => void effects.splice(0));
}

/** What the tests of approvals do with runs of agents. */
export function makeApprovalRuns(harness: AgentHarness) {
  const { site, member, admin, upstream, model } = harness;
  const effects: Effect[] = [];
  site.on("/pay", ({ path, body, headers }, response) => {
    effects.push({ path, body, key: headers["idempotency-key"]?.toString() });
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ paid: body }));
  });
  /** A tool that pays, which needs an approval unless the fields say otherwise. */
  const payTool = (approval: object | null = {}, name = "pay") => ({
    type: "http_request",
    name,
    config: { allowedHosts: [site.host], methods: ["GET", "POST"] },
    ...(approval ? { approval: { assigneeRole: "admin", ...approval } } : {}),
  });
  const pay = (amount: unknown, name = "pay") => ({
    name,
    arguments: { url: `${site.origin}/pay`, method: "POST", body: JSON.stringify({ amount }) },
  });
  return {
    effects,
    payTool,
    pay,
    /** The bodies of the effects, sorted. */
    paid: () => effects.map(({ body }) => JSON.parse(body).amount).sort(),
    async createAgent(tools: object[], more: object = {}): Promise<string> {
      const made = await member.post("/agents", { name: "Payer", model, systemPrompt: "You pay.", tools, ...more });
      expect(made.status, made.text).to.equal(201);
      return made.string("agentId");
    },
    async start(agentId: string, body: object = {}): Promise<{ runId: string; jobId: string; path: string }> {
      const options = { headers: { prefer: "respond-async" } };
      const started = await member.post(`/agents/${agentId}/run`, { input: "Pay.", ...body }, options);
      expect(started.status, started.text).to.equal(202);
      const runId = started.string("runId");
      return { runId, jobId: started.string("jobId"), path: `/agents/${agentId}/runs/${runId}` };
    },
    /** The run once it is in one of these states. */
    reach: (path: string, ...states: string[]): Promise<ApiResponse> =>
      pollUntil(
        async () => {
          const run = await member.get(path);
          return states.includes(run.string("status")) ? run : undefined;
        },
        { timeoutMs: 20_000, what: `a run that is ${states.join(" or ")}` },
      ),
    /** The pending approvals of a run, in the order of their calls, once there are as many. */
    pending: (runId: string, count = 1): Promise<ListedApproval[]> =>
      pollUntil(
        async () => {
          const list = await admin.get("/workflows/approvals?limit=100");
          const data = list.at("data") as ListedApproval[]; // the client has checked its schema
          const own = data.filter((one) => one.runId === runId).sort((a, b) => a.callId.localeCompare(b.callId));
          return own.length === count ? own : undefined;
        },
        { timeoutMs: 20_000, what: `${count} approvals` },
      ),
    decide: (approvalId: string, decision: "approved" | "rejected", comment?: string) =>
      admin.post(`/workflows/approvals/${approvalId}/decide`, { decision, ...(comment && { comment }) }),
    /** Calls once for each of these, and then answers with what the tools said. */
    callOnce: (...calls: { name: string; arguments: object }[]) =>
      upstream.play(({ turn, messages }) =>
        turn === 1
          ? { text: "I call.", calls }
          : { text: messages.flatMap(({ role, content }) => (role === "tool" ? [content] : [])).join(" | ") },
      ),
  };
}
