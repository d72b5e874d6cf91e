import { expect } from "chai";
import { startHandshakeTaskServer, startStatelessTaskServer, type TaskServer } from "../support/mcp-task-servers.ts";
import { pollUntil } from "../support/poll-until.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const waitLong = { timeoutMs: 30_000 };

describe("an agent and an MCP server whose calls become tasks", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  const servers: Partial<Record<"2025-11-25" | "2026-07-28", TaskServer>> = {};
  before(async () => {
    servers["2025-11-25"] = await startHandshakeTaskServer();
    servers["2026-07-28"] = await startStatelessTaskServer();
    const origins = Object.values(servers).map(({ origin }) => origin);
    harness = await openWorkflowHarness({ env: { FETCH_ALLOW_ORIGINS: origins.join(",") } });
  });
  after(async () => {
    await harness?.close();
    await Promise.all(Object.values(servers).map((server) => server.close()));
  });

  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    describe(`of ${revision}`, () => {
      const serverOf = () => {
        const server = servers[revision];
        if (server === undefined) throw new Error("the server has not been started");
        return server;
      };
      /** Starts a run whose model calls the tools, each once; its job and its path. */
      const start = async (...tools: string[]) => {
        const calls = tools.map((tool) => ({ name: `far_${tool}`, arguments: {} }));
        harness.model.play(({ turn }) => (turn === 1 ? { calls } : { text: "Done." }));
        const far = { type: "mcp", name: "far", config: { url: serverOf().url } };
        const agent = { name: "Desk", model: chatModel, systemPrompt: "You call.", tools: [far] };
        const agentId = (await harness.member.post("/agents", agent)).string("agentId");
        const headers = { prefer: "respond-async" };
        const run = await harness.member.post(`/agents/${agentId}/run`, { input: "Call." }, { headers });
        return { path: `/agents/${agentId}/runs/${run.string("runId")}`, jobId: run.string("jobId") };
      };
      /** What the model observes of each tool, by its name. */
      const observe = async (...tools: string[]) => {
        const { path } = await start(...tools);
        const ended = await pollUntil(async () => {
          const run = await harness.member.get(path);
          return run.at("status") === "completed" ? run : null;
        }, waitLong);
        const actions = ended.at("steps[0].actions") as { action: string; observation: string; isError?: boolean }[];
        return Object.fromEntries(actions.map(({ action, observation, isError }) => [action, [isError, observation]]));
      };

      it("reads the result of a task that ends, even if the server was unavailable once", async () => {
        const seen = await observe("report", "flaky", "refused");
        expect(seen.far_report).to.deep.equal([undefined, "The report is done."]);
        expect(seen.far_flaky).to.deep.equal([undefined, "The report is done."]);
        expect(seen.far_refused).to.deep.equal([true, "There is no such account."]);
      });

      it("reads why a task failed, was lost, or asks for a person; the last is cancelled", async () => {
        const seen = await observe("broken", "lost", "ask");
        expect(seen.far_broken?.[0]).to.equal(true);
        expect(seen.far_broken?.[1]).to.contain("The disk is full.");
        expect(seen.far_lost?.[0]).to.equal(true);
        expect(seen.far_lost?.[1])
          .to.match(/no such task|not found/i)
          .and.not.to.contain("{");
        expect(seen.far_ask).to.deep.equal([
          true,
          "The tool failed: The task asks for a person's input, which an agent cannot give. It was cancelled.",
        ]);
        expect(await serverOf().states("ask")).to.deep.equal(["cancelled"]);
      });

      it("cancels the task when its run is cancelled", async () => {
        const { jobId } = await start("endless");
        await pollUntil(async () => (await serverOf().states("endless")).length === 1, waitLong);
        await harness.member.post(`/jobs/${jobId}/cancel`);
        await pollUntil(async () => (await serverOf().states("endless"))[0] === "cancelled", waitLong);
      });
    });
  }
});
