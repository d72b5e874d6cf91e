import { expect } from "chai";
import { makeClient, valueAt } from "../support/http-client.ts";
import { postStateless } from "../support/mcp-stateless.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const able = { capabilities: { elicitation: {}, extensions: { "io.modelcontextprotocol/tasks": {} } } };
const draft = { type: "ai_completion", id: "draft", model: chatModel, prompt: "Draft." };
const send = { ...draft, id: "send", prompt: "Send {{ steps.draft.output }}" };
const sign = { type: "human_approval", id: "sign", assigneeRole: "admin", message: "Send it?" };

describe("a task of the tool server", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  const processes: HostProcess[] = [];
  before(async () => {
    const env = { TOOL_WAIT_MS: "0", JOB_LEASE_MS: "1000", RECONCILE_EVERY_MS: "300" };
    harness = await openWorkflowHarness({ services: "private", workers: false, env });
  });
  after(async () => {
    await Promise.all(processes.map((one) => one.kill()));
    await harness?.close();
  });

  const start = async (script: "api/server.ts" | "workers/main.ts") => {
    const started = await startProcess(script, harness.test.env);
    processes.push(started);
    return started;
  };
  const clientOf = ({ ready }: HostProcess) => makeClient({ url: String(ready.url), key: harness.test.keys.admin });
  const emptyRedis = async () => {
    if (!process.env.REDIS_URL) await harness.test.platform.redis.producer.flushall(); // another's Redis is not emptied
  };

  it("outlives kill -9 of the API and of the worker, and an emptied Redis, at work and while it awaits a decision", async () => {
    const publish = { name: "send_draft", description: "Drafts, and sends after a decision." };
    await harness.create([draft, sign, send], { publish });
    const asked: string[] = [];
    const held = Promise.withResolvers<void>();
    harness.model.play(async ({ input }) => {
      asked.push(input);
      if (asked.length === 1) await held.promise; // the first worker never gets this answer
      return { text: "The text." };
    });

    const [firstApi, firstWorker] = [await start("api/server.ts"), await start("workers/main.ts")];
    const created = await postStateless(clientOf(firstApi), "tools/call", { name: publish.name, arguments: {} }, able);
    const taskId = created.string("result.taskId");
    await pollUntil(() => asked.length === 1, { what: "the worker at its first step" });
    await Promise.all([firstApi.kill(), firstWorker.kill()]);
    await emptyRedis();
    held.resolve();

    const [secondApi, secondWorker] = [await start("api/server.ts"), await start("workers/main.ts")];
    const get = (api: HostProcess) => postStateless(clientOf(api), "tasks/get", { taskId }, able);
    const waiting = await pollUntil(
      async () => {
        const task = await get(secondApi);
        return task.at("result.status") === "input_required" ? task : null;
      },
      { timeoutMs: 20_000, everyMs: 100, what: "the question of the task" },
    );
    const [approvalId = ""] = Object.keys(valueAt(waiting.body, "result.inputRequests") as object);
    await Promise.all([secondApi.kill(), secondWorker.kill()]);
    await emptyRedis();

    const [thirdApi] = [await start("api/server.ts"), await start("workers/main.ts")];
    expect((await get(thirdApi)).at("result.status")).to.equal("input_required");
    const inputResponses = { [approvalId]: { action: "accept", content: { confirm: true } } };
    const updated = await postStateless(clientOf(thirdApi), "tasks/update", { taskId, inputResponses }, able);
    expect(updated.at("result.resultType")).to.equal("complete");
    const ended = await pollUntil(
      async () => {
        const task = await get(thirdApi);
        return task.at("result.status") === "completed" ? task : null;
      },
      { timeoutMs: 20_000, everyMs: 100, what: "the end of the task" },
    );
    expect(ended.at("result.result.structuredContent.output")).to.equal("The text.");
    expect(asked, "the interrupted step again, and the last one once").to.deep.equal([
      "Draft.",
      "Draft.",
      "Send The text.",
    ]);
  });
});
