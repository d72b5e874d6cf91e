import { createHash } from "node:crypto";
import { expect } from "chai";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import { makeApprovalRuns } from "../support/approval-run.ts";
import { startOddMcpServer } from "../support/odd-mcp-server.ts";
import { pollUntil } from "../support/poll-until.ts";

const bank = "bank_pay";

describe("arguments of a call that somebody approves", function () {
  this.timeout(60_000);
  let harness: AgentHarness;
  let runs: ReturnType<typeof makeApprovalRuns>;
  let server: Awaited<ReturnType<typeof startOddMcpServer>>;
  let isAway = false;
  const paid: unknown[] = [];
  before(async () => {
    server = await startOddMcpServer({
      "tools/list": () => (isAway ? undefined : { tools: [{ name: "pay", inputSchema: { type: "object" } }] }),
      "tools/call": ({ arguments: given }) => {
        paid.push(given);
        return { content: [{ type: "text", text: "paid" }] };
      },
    });
    harness = await openAgentHarness({ RECONCILE_EVERY_MS: "300", FETCH_ALLOW_ORIGINS: server.origin });
    runs = makeApprovalRuns(harness);
  });
  after(async () => {
    await harness?.close();
    await server?.close();
  });
  beforeEach(() => {
    paid.length = 0;
    isAway = false;
  });

  const createAgent = () =>
    runs.createAgent([
      { type: "mcp", name: "bank", config: { url: server.url }, approval: { assigneeRole: "admin" } },
      { type: "calculator", approval: { assigneeRole: "admin" } },
    ]);
  const say = (...calls: { name: string; arguments: string }[]) =>
    harness.upstream.play(({ turn, messages }) =>
      turn === 1
        ? { calls }
        : { text: messages.flatMap(({ role, content }) => (role === "tool" ? content : [])).join() },
    );

  it("are shown and hashed as the tool gets them, also numbers that a double rounds and halves of characters", async () => {
    say({ name: bank, arguments: '{"to":9007199254740993,"rate":1e999,"note":"a\\ud83d","\\udc00":[-0]}' });
    const { runId, path } = await runs.start(await createAgent());
    const [approval] = await runs.pending(runId);
    expect(approval?.arguments).to.deep.equal({ to: 9007199254740992, rate: null, note: "a\ufffd", "\ufffd": [0] });
    const canonical = '{"note":"a\ufffd","rate":null,"to":9007199254740992,"\ufffd":[0]}';
    expect(approval?.argumentsHash).to.equal(createHash("sha256").update(canonical).digest("hex"));
    await runs.decide(approval?.approvalId ?? "", "approved");
    const ended = await runs.reach(path, "completed");
    expect(paid).to.deep.equal([approval?.arguments]);
    expect(ended.at("integrity.verified")).to.equal(true);
  });

  it("are asked about by nobody where they cannot be read, and the call is not made", async () => {
    const deep = `{"a":${"[".repeat(5_000)}${"]".repeat(5_000)}}`;
    for (const name of [bank, "calculator"])
      for (const text of [deep, "[1]", '{"to":', '"x"']) {
        say({ name, arguments: text });
        const ended = await runs.reach((await runs.start(await createAgent())).path, "completed", "failed");
        expect(ended.at("status"), `${name} ${text.slice(0, 20)}`).to.equal("completed");
        expect(ended.string("finalOutput")).to.contain("The arguments are not a JSON object");
      }
    expect(paid).to.deep.equal([]);
  });

  it("stay to be decided on while the server of their tool cannot be reached", async () => {
    say({ name: bank, arguments: '{"to":1}' }, { name: bank, arguments: '{"to":2}' });
    const { runId, path } = await runs.start(await createAgent());
    const open = await runs.pending(runId, 2);
    isAway = true;
    await runs.decide(open[0]?.approvalId ?? "", "approved");
    await pollUntil(async () => {
      const actions = (await harness.member.get(path)).at("steps[0].actions") as { observation?: string }[];
      return actions[0]?.observation?.includes("no tool bank_pay");
    });
    await runs.reach(path, "awaiting_approval");
    isAway = false;
    await runs.decide(open[1]?.approvalId ?? "", "approved");
    await runs.reach(path, "completed");
    expect(paid).to.deep.equal([{ to: 2 }]);
  });
});
