import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import { McpServer as Server } from "@modelcontextprotocol/sdk/server/mcp.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";

/** Tools that make tasks, and what becomes of these; `lost` is forgotten, `flaky` is a 503 once, `endless` stays at work. */
const ends = {
  report: { status: "completed", text: "The report is done." },
  refused: { status: "completed", text: "There is no such account.", isError: true },
  broken: { status: "failed", text: "The disk is full." },
  ask: { status: "input_required" },
  lost: { status: "lost" },
  flaky: { status: "completed", text: "The report is done." },
  endless: { status: "working" },
} as const;
type Tool = keyof typeof ends;
const names = Object.keys(ends) as Tool[];

type Message = { id?: number; method: string; params: { name: Tool; taskId: string; task?: { ttl?: number } } };

export type TaskServer = {
  url: string;
  origin: string;
  /** The states of the tasks that a tool has made. */
  states(tool: Tool): Promise<unknown[]>;
  close(): Promise<void>;
};

type Answer = (message: Message, request: IncomingMessage, response: ServerResponse) => Promise<unknown>;

/** Listens on loopback; whatever `answer` returns is the body of the response, but for its `status`. The first poll of `flaky` is a 503. */
async function listen(toolOf: (taskId: string) => Tool | undefined, answer: Answer) {
  let isFlaky = true;
  const listener = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    if (parts.length === 0) return void response.writeHead(405).end();
    const message = JSON.parse(Buffer.concat(parts).toString("utf8")) as Message;
    if (message.method === "tasks/get" && toolOf(message.params.taskId) === "flaky" && isFlaky) {
      isFlaky = false;
      return void response.writeHead(503).end();
    }
    const { status = 200, ...body } = Object(await answer(message, request, response));
    if (response.headersSent) return;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...body }));
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const origin = `http://127.0.0.1:${address.port}`;
  const close = async () => {
    listener.close();
    listener.closeAllConnections();
    await once(listener, "close");
  };
  return { origin, url: `${origin}/mcp`, close };
}

/** A server of 2025-11-25, by the official SDK, each of whose tools requires a task. */
export async function startHandshakeTaskServer(): Promise<TaskServer> {
  const made = new Map<string, Tool>();
  class Store extends InMemoryTaskStore {
    override async getTask(taskId: string) {
      return made.get(taskId) === "lost" ? null : super.getTask(taskId);
    }
  }
  const store = new Store();
  const toServer = (response: ServerResponse) => {
    const capabilities = { tasks: { cancel: {}, requests: { tools: { call: {} } } } };
    const server = new Server({ name: "tasks", version: "1.0.0" }, { capabilities, taskStore: store });
    for (const name of names) {
      server.experimental.tasks.registerToolTask(
        name,
        { description: `Makes a ${name}`, execution: { taskSupport: "required" } },
        {
          async createTask({ taskStore, taskRequestedTtl }) {
            const task = await taskStore.createTask({ ttl: taskRequestedTtl ?? null, pollInterval: 1 });
            made.set(task.taskId, name);
            response.once("close", () => void finish(task.taskId, name)); // the call sees the task at work
            return { task };
          },
          getTask: async ({ taskStore, taskId }) => taskStore.getTask(taskId),
          getTaskResult: async ({ taskStore, taskId }) => (await taskStore.getTaskResult(taskId)) as never,
        },
      );
    }
    return server;
  };
  const finish = async (taskId: string, name: Tool) => {
    const end: { status: string; text?: string; isError?: boolean } = ends[name];
    const content = [{ type: "text", text: end.text ?? "" }];
    if (end.status === "input_required") await store.updateTaskStatus(taskId, "input_required");
    if (end.status === "completed") await store.storeTaskResult(taskId, "completed", { content, ...end });
    if (end.status === "failed") await store.storeTaskResult(taskId, "failed", { content, isError: true });
  };
  const { close, ...at } = await listen(
    (taskId) => made.get(taskId),
    async (message, { headers }, response) => {
      const server = toServer(response);
      const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
      await server.connect(transport as Parameters<Server["connect"]>[0]);
      const request = new Request("http://127.0.0.1/mcp", {
        method: "POST",
        headers: headers as Record<string, string>,
        body: JSON.stringify(message),
      });
      const made = await transport.handleRequest(request);
      response.writeHead(made.status, Object.fromEntries(made.headers)).end(await made.text());
      await server.close();
    },
  );
  return {
    ...at,
    states: async (tool) => {
      const ids = [...made].filter(([, name]) => name === tool).map(([taskId]) => taskId);
      return (await Promise.all(ids.map((taskId) => store.getTask(taskId)))).map((task) => task?.status);
    },
    async close() {
      store.cleanup();
      await close();
    },
  };
}

/** A server of 2026-07-28 with the extension of tasks, each of whose calls becomes one. */
export async function startStatelessTaskServer(): Promise<TaskServer> {
  const made: { tool: Tool; status: string; polls: number }[] = [];
  const refusal = { status: 404, error: { code: -32_602, message: "There is no such task." } };
  const answer = async ({ method, params }: Message) => {
    const task = made[Number(params.taskId)];
    if (method === "server/discover") {
      return {
        result: { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, ttlMs: 0 },
      };
    }
    if (method === "tools/list") {
      return { result: { resultType: "complete", tools: names.map((name) => ({ name, inputSchema: {} })) } };
    }
    if (method === "tools/call") {
      made.push({ tool: params.name, status: "working", polls: 0 });
      const taskId = String(made.length - 1);
      return { result: { resultType: "task", taskId, status: "working", pollIntervalMs: 1 } };
    }
    if (!task) return refusal;
    if (method === "tasks/cancel") {
      task.status = "cancelled";
      return { result: { resultType: "complete" } };
    }
    const end: { status: string; text?: string; isError?: boolean } = ends[task.tool];
    task.polls += 1;
    if (task.status === "working" && task.polls > 1) task.status = end.status;
    if (task.status === "lost") return refusal;
    const { text = "", isError = false } = end;
    const result = { resultType: "complete", content: [{ type: "text", text }], isError };
    return {
      result: {
        resultType: "complete",
        taskId: params.taskId,
        status: task.status,
        pollIntervalMs: 1,
        ...(task.status === "completed" && { result }),
        ...(task.status === "failed" && { error: { code: -32_603, message: text } }),
        ...(task.status === "input_required" && { inputRequests: { q: { method: "elicitation/create", params: {} } } }),
      },
    };
  };
  const at = await listen((taskId) => made[Number(taskId)]?.tool, answer);
  return { ...at, states: async (tool) => made.filter((task) => task.tool === tool).map(({ status }) => status) };
}
