import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect } from "chai";
import { makeClient, valueAt } from "../support/http-client.ts";
import { postStateless } from "../support/mcp-stateless.ts";
import { pollUntil } from "../support/poll-until.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const description = "A tool of the tenant's own.";
const inputSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const greet = { type: "ai_completion", id: "greet", model: chatModel, prompt: "Greet {{ input.name }}" };
const sign = { type: "human_approval", id: "sign", assigneeRole: "admin", message: "Send it?" };

describe("the official clients of both eras of the Model Context Protocol", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
    harness.model.play(() => ({ text: "Hello, Ada!" }));
    await harness.create([greet], { inputSchema, publish: { name: "greet", description } });
    await harness.create([sign, greet], { inputSchema, publish: { name: "greet_signed", description } });
  });
  after(() => harness?.close());

  const url = () => new URL(`${harness.test.url}/mcp`);
  const requestInit = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

  it("the client of today agrees on 2026-07-28, lists and calls, and checks results by their schemas", async () => {
    const options = { versionNegotiation: { mode: "auto" } } as const;
    const client = new Client({ name: "test", version: "1.0.0" }, options);
    await client.connect(
      new StreamableHTTPClientTransport(url(), { requestInit: requestInit(harness.test.keys.member) }),
    );
    try {
      expect(client.getNegotiatedProtocolVersion()).to.equal("2026-07-28");
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).to.include.members(["greet", "svc_chat", "svc_health"]);
      const greeted = await client.callTool({ name: "greet", arguments: { name: "Ada" } });
      expect(valueAt(greeted, "content[0].text")).to.equal("Hello, Ada!");
      expect(valueAt(greeted, "structuredContent.output")).to.equal("Hello, Ada!");
      const wrong = await client.callTool({ name: "greet", arguments: {} }).catch((error: unknown) => error);
      expect(valueAt(wrong, "code")).to.equal(-32_602);
    } finally {
      await client.close();
    }
  });

  /** The client of today with the official extension for tasks, whose requests the test itself sends on. */
  const connectWithTasks = async (key: string, answer: (message: unknown) => boolean) => {
    const clientInfo = { name: "test", version: "1.0.0" };
    const clientCapabilities = { elicitation: {}, extensions: { "io.modelcontextprotocol/tasks": {} } };
    const options = { versionNegotiation: { mode: "auto" }, capabilities: clientCapabilities } as const;
    const client = new Client(clientInfo, options);
    await client.connect(new StreamableHTTPClientTransport(url(), { requestInit: requestInit(key) }));
    const api = makeClient({ url: harness.test.url, key });
    const session = createTaskSessionFromClient(client, {
      endpointId: "switchyard",
      v2RequestFraming: { protocolVersion: "2026-07-28", clientInfo, clientCapabilities },
      async rawDispatch(request) {
        const { method, params } = request as { method: string; params: object };
        const { body } = await postStateless(api, method, { ...params });
        const { result, error } = body as { result: never; error: never };
        return error === undefined ? { kind: "result", result } : { kind: "error", error };
      },
      async onInputRequest(request) {
        return { action: "accept", content: { confirm: answer(valueAt(request, "params.message")) } } as never; // of its kind
      },
    });
    const close = async () => {
      await session.close();
      await client.close();
    };
    return { session, close };
  };

  it("the client of today, with its extension, gets a task, and asks its person for the decision in it", async () => {
    const asked: unknown[] = [];
    const { session, close } = await connectWithTasks(harness.test.keys.admin, (message) => asked.push(message) > 0);
    try {
      const execution = await session.callTool("greet_signed", { name: "Ada" });
      expect(execution.kind).to.equal("task");
      const { outcome } = await execution.settle();
      expect(asked).to.deep.equal(["Send it?"]);
      expect(valueAt(resultFromTaskOutcome(outcome), "structuredContent.output")).to.equal("Hello, Ada!");
    } finally {
      await close();
    }
  });

  it("the client of today, with its extension, cancels a task", async () => {
    const { session, close } = await connectWithTasks(harness.test.keys.member, () => false);
    try {
      const execution = await session.callTool("greet_signed", { name: "Ada" });
      await execution.cancel();
      expect((await execution.result()).status).to.equal("cancelled");
    } finally {
      await close();
    }
  });

  const connectOld = async (key: string) => {
    const client = new OldClient({ name: "test", version: "1.0.0" }, { capabilities: { elicitation: {} } });
    const transport = new OldTransport(url(), { requestInit: requestInit(key) });
    // The SDK's own types disagree with each other under exactOptionalPropertyTypes.
    await client.connect(transport as Parameters<OldClient["connect"]>[0]);
    await client.listTools();
    return client;
  };

  it("the client of 2025-11-25 gets a task, follows it, and asks its person for the decision in it", async () => {
    const client = await connectOld(harness.test.keys.admin);
    const asked: string[] = [];
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      asked.push(params.message);
      return { action: "accept", content: { confirm: true } };
    });
    const seen: string[] = [];
    let result: unknown;
    const call = { name: "greet_signed", arguments: { name: "Ada" } };
    for await (const message of client.experimental.tasks.callToolStream(call, CallToolResultSchema, { task: {} })) {
      seen.push(message.type);
      if (message.type === "result") result = message.result;
      if (message.type === "error") throw message.error;
    }
    await client.close();
    expect(asked).to.deep.equal(["Send it?"]);
    expect(seen).to.include.members(["taskCreated", "taskStatus", "result"]);
    expect(valueAt(result, "structuredContent.output")).to.equal("Hello, Ada!");
  });

  it("the client of 2025-11-25 cancels a task", async () => {
    const client = await connectOld(harness.test.keys.member);
    const call = { name: "greet_signed", arguments: { name: "Ada" } };
    const stream = client.experimental.tasks.callToolStream(call, CallToolResultSchema, { task: {} });
    const created = (await stream.next()).value;
    if (created?.type !== "taskCreated") throw new Error("no task was created");
    const { taskId } = created.task;
    await pollUntil(async () => (await client.experimental.tasks.getTask(taskId)).status !== undefined);
    expect((await client.experimental.tasks.cancelTask(taskId)).status).to.be.oneOf(["cancelled", "working"]);
    await pollUntil(async () => (await client.experimental.tasks.getTask(taskId)).status === "cancelled");
    await client.close();
  });
});
