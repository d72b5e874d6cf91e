import { resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect } from "chai";
import { valueAt } from "../support/http-client.ts";
import { connectOld, connectToday, openTaskSession } from "../support/mcp-clients.ts";
import { pollUntil } from "../support/poll-until.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const description = "A tool of the tenant's own.";
const inputSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const greet = { type: "ai_completion", id: "greet", model: chatModel, prompt: "Greet {{ input.name }}" };
const sign = { type: "human_approval", id: "sign", assigneeRole: "admin", message: "Send it?" };
const slow = { name: "greet", arguments: { name: "Ada" } };
const signed = { name: "greet_signed", arguments: { name: "Ada" } };

describe("tasks of the official clients of both eras", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  /** Lets the model answer, which `greet` waits for. */
  let answer: () => void;
  before(async () => {
    harness = await openWorkflowHarness({ env: { TOOL_WAIT_MS: "200" } });
    await harness.create([greet], { inputSchema, publish: { name: "greet", description } });
    await harness.create([sign, greet], { inputSchema, publish: { name: "greet_signed", description } });
  });
  beforeEach(() => {
    const held = Promise.withResolvers<void>();
    answer = held.resolve;
    harness.model.play(async () => {
      await held.promise;
      return { text: "Hello, Ada!" };
    });
  });
  afterEach(() => answer());
  after(() => harness?.close());

  const at = (role: "member" | "admin") => ({ url: harness.test.url, key: harness.test.keys[role] });
  const statusOfJob = async (jobId: string) => (await harness.member.get(`/jobs/${jobId}`)).at("status");

  describe("@modelcontextprotocol/client with @modelcontextprotocol/ext-tasks", () => {
    it("gets a task of a call that outlasts the wait, polls it, and gets its structured result", async () => {
      const { session, close } = await openTaskSession(at("member"), () => "decline");
      try {
        const execution = await session.callTool(slow.name, slow.arguments);
        if (execution.kind !== "task") throw new Error("no task was created");
        const { taskId } = execution.handle;
        expect(await statusOfJob(taskId)).to.be.oneOf(["queued", "running"]);
        const states: unknown[] = [];
        for await (const event of execution.updates()) {
          if (event.type === "task") states.push(event.task.status);
          answer();
          if (event.type !== "outcome") continue;
          expect(valueAt(resultFromTaskOutcome(event.outcome), "structuredContent.output")).to.equal("Hello, Ada!");
        }
        expect([states[0], states.at(-1)]).to.deep.equal(["working", "completed"]);
      } finally {
        await close();
      }
    });

    it("cancels a task at work", async () => {
      const { session, close } = await openTaskSession(at("member"), () => "decline");
      try {
        const execution = await session.callTool(slow.name, slow.arguments);
        if (execution.kind !== "task") throw new Error("no task was created");
        await execution.cancel();
        expect((await execution.result()).status).to.equal("cancelled");
        await pollUntil(async () => (await statusOfJob(execution.handle.taskId)) === "cancelled");
      } finally {
        await close();
      }
    });

    it("asks its person for the decision that a task awaits", async () => {
      answer();
      const asked: string[] = [];
      const { session, close } = await openTaskSession(at("admin"), (message) => asked.push(message) > 0);
      try {
        const execution = await session.callTool(signed.name, signed.arguments);
        expect(execution.kind).to.equal("task");
        const { outcome } = await execution.settle();
        expect(asked).to.deep.equal(["Send it?"]);
        expect(valueAt(resultFromTaskOutcome(outcome), "structuredContent.output")).to.equal("Hello, Ada!");
      } finally {
        await close();
      }
    });
  });

  describe("@modelcontextprotocol/client by itself", () => {
    it("refuses the task that it declared to take: it needs the extension's package", async () => {
      const client = await connectToday(at("member"), { withTasks: true });
      const refused: unknown = await client.callTool(slow).catch((error: unknown) => error);
      await client.close();
      expect([valueAt(refused, "code"), valueAt(refused, "data.resultType")]).to.deep.equal([
        "UNSUPPORTED_RESULT_TYPE",
        "task",
      ]);
    });

    it("asks its person for the decision that a call awaits, and calls again with it", async () => {
      answer();
      const asked: string[] = [];
      const client = await connectToday(at("admin"), { answer: (message) => asked.push(message) > 0 });
      try {
        const { structuredContent } = await client.callTool(signed);
        expect(asked).to.deep.equal(["Send it?"]);
        expect(valueAt(structuredContent, "output")).to.equal("Hello, Ada!");
      } finally {
        await client.close();
      }
    });

    it("gets the id of the job where it declares no tasks, and follows it by a tool", async () => {
      const client = await connectToday(at("member"));
      try {
        const { jobId } = (await client.callTool(slow)).structuredContent as { jobId: string };
        answer();
        const ended = await pollUntil(async () => {
          const { structuredContent } = await client.callTool({ name: "svc_job", arguments: { jobId } });
          return valueAt(structuredContent, "output");
        });
        expect(ended).to.equal("Hello, Ada!");
      } finally {
        await client.close();
      }
    });
  });

  describe("@modelcontextprotocol/sdk, of 2025-11-25", () => {
    const streamOf = (client: Awaited<ReturnType<typeof connectOld>>, call: typeof slow) =>
      client.experimental.tasks.callToolStream(call, CallToolResultSchema, { task: {} });

    it("gets a task, polls it, and gets its structured result", async () => {
      const client = await connectOld(at("member"));
      const seen: string[] = [];
      let result: unknown;
      for await (const message of streamOf(client, slow)) {
        seen.push(message.type === "taskStatus" ? message.task.status : message.type);
        if (message.type === "taskStatus") answer();
        if (message.type === "result") result = message.result;
        if (message.type === "error") throw message.error;
      }
      await client.close();
      expect([...new Set(seen)]).to.deep.equal(["taskCreated", "working", "completed", "result"]);
      expect(valueAt(result, "structuredContent.output")).to.equal("Hello, Ada!");
    });

    it("gets the id of a task when a plain call outlasts the wait", async () => {
      const client = await connectOld(at("member"));
      const { tasks } = client.experimental;
      try {
        const { jobId } = (await client.callTool(slow)).structuredContent as { jobId: string };
        expect((await tasks.getTask(jobId)).status).to.equal("working");
        answer();
        const result = await tasks.getTaskResult(jobId, CallToolResultSchema);
        expect(valueAt(result.structuredContent, "output")).to.equal("Hello, Ada!");
      } finally {
        await client.close();
      }
    });

    it("asks its person for the decision that a task awaits", async () => {
      answer();
      const asked: string[] = [];
      const client = await connectOld(at("admin"), (message) => asked.push(message) > 0);
      const seen: string[] = [];
      let result: unknown;
      for await (const message of streamOf(client, signed)) {
        seen.push(message.type === "taskStatus" ? message.task.status : message.type);
        if (message.type === "result") result = message.result;
        if (message.type === "error") throw message.error;
      }
      await client.close();
      expect(asked).to.deep.equal(["Send it?"]);
      expect(seen).to.include("input_required");
      expect(valueAt(result, "structuredContent.output")).to.equal("Hello, Ada!");
    });

    it("cancels a task at work", async () => {
      const client = await connectOld(at("member"));
      const created = (await streamOf(client, slow).next()).value;
      if (created?.type !== "taskCreated") throw new Error("no task was created");
      const { taskId } = created.task;
      const { tasks } = client.experimental;
      expect((await tasks.cancelTask(taskId)).status).to.be.oneOf(["cancelled", "working"]);
      await pollUntil(async () => (await tasks.getTask(taskId)).status === "cancelled");
      await client.close();
    });
  });
});
