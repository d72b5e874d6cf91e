import { defaultModelAlias } from "../../src/gateway/providers/edge/models.ts";
import { disguisedPaths } from "./disguised-paths.ts";
import { askSurface, eachForm } from "./four-surfaces.ts";
import type { ApiClient, ApiResponse } from "./http-client.ts";
import { type MoreClients, morePaths } from "./more-guarded-paths.ts";
import { pollUntil } from "./poll-until.ts";

/** What came of a text on a path: all that the caller got, and how it was refused, if it was. */
type Outcome = { said: string; refusal?: unknown };
/** `isExact`: the text is an id or an address, so that what would be masked is refused. `asksNone`: no model is asked. */
export type GuardedPath = { name: string; isExact?: true; asksNone?: true; send(text: string): Promise<Outcome> };
type Kind = Pick<GuardedPath, "isExact" | "asksNone">;

export const model = "gpt-5.4-mini";
const ends = ["completed", "failed", "cancelled", "stopped"];

export const toOutcome = ({ status, body, text }: Pick<ApiResponse, "status" | "body" | "text">): Outcome => {
  const { code, type } = Object(Object(body).error);
  return { said: text, ...(status >= 400 && { refusal: code ?? type ?? status }) };
};

export const reachEnd = (member: ApiClient, path: string) =>
  pollUntil(async () => {
    const one = await member.get(path);
    return ends.includes(String(one.at("status"))) ? one : undefined;
  });

type Clients = MoreClients & { member: ApiClient; clientOf(key: string): ApiClient };

/** Every way by which a text gets to a model, or is kept. */
export async function guardedPaths(clients: Clients): Promise<GuardedPath[]> {
  const { member } = clients;
  const agentId = (await member.post("/agents", { name: "Echo", systemPrompt: "Say it again.", model })).string(
    "agentId",
  );
  const steps = [{ type: "ai_completion", id: "first", model, prompt: "Say: {{ input.text }}" }];
  const workflowId = (await member.post("/workflows", { name: "Echo", steps })).string("workflowId");
  const sealedPrompt = "Say: {{ input.signature }} {{ input.source.data }} {{ input.call.call_id }}";
  const sealedSteps = [{ type: "ai_completion", id: "first", model, prompt: sealedPrompt }];
  const sealedId = (await member.post("/workflows", { name: "Sealed", steps: sealedSteps })).string("workflowId");
  const post = (name: string, path: string, toBody: (text: string) => object, kind: Kind = {}): GuardedPath => ({
    name,
    ...kind,
    send: async (text) => toOutcome(await member.post(path, toBody(text), { headers: { prefer: "wait=20" } })),
  });
  const chats = [...eachForm()].map((form) => chatPath(member, { ...form, name: form.surface.name, model }));
  return [
    ...chats,
    ...(await widgetPaths(clients)),
    post("responses, stored", "/v1/responses", (text) => ({ model, input: text })),
    {
      name: "responses, background",
      async send(text) {
        const asked = await member.post("/v1/responses", { model, input: text, background: true });
        if (asked.status !== 200) return toOutcome(asked);
        return toOutcome(await reachEnd(member, `/v1/responses/${asked.string("id")}`));
      },
    },
    post("conversation", "/v1/conversations", (text) => ({ items: [{ role: "user", content: text }] }), {
      asksNone: true,
    }),
    post("tool result", "/ai/chat", (text) => ({
      model,
      messages: [
        { role: "user", content: "Look it up." },
        {
          role: "assistant",
          content: "",
          tool_calls: [{ id: "c1", type: "function", function: { name: "look", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "c1", content: text },
      ],
    })),
    post("tool arguments", "/ai/chat", (text) => ({
      model,
      messages: [
        { role: "user", content: "Look it up." },
        {
          role: "assistant",
          content: "",
          tool_calls: [{ id: "c1", type: "function", function: { name: "look", arguments: JSON.stringify({ text }) } }],
        },
        { role: "tool", tool_call_id: "c1", content: "found" },
      ],
    })),
    post("embeddings", "/ai/embeddings", (text) => ({ model: "text-embedding-3-small", input: [text] })),
    post("OpenAI's embeddings", "/v1/embeddings", (text) => ({ model: "text-embedding-3-small", input: text })),
    post("agent", `/agents/${agentId}/run`, (text) => ({ input: text })),
    post("agent as model", "/v1/chat/completions", (text) => ({
      model: `agent:${agentId}`,
      messages: [{ role: "user", content: text }],
    })),
    {
      name: "workflow",
      async send(text) {
        const started = await member.post(`/workflows/${workflowId}/execute`, { input: { text } });
        if (started.status !== 202) return toOutcome(started);
        const runId = started.string("runId");
        return toOutcome(await reachEnd(member, `/workflows/${workflowId}/runs/${runId}`));
      },
    },
    post("chat, metadata and user", "/ai/chat", (text) => ({
      model,
      messages: [{ role: "user", content: "Hi." }],
      metadata: { about: text },
      user: text,
    })),
    post("chat, tool description", "/ai/chat", (text) => ({
      model,
      messages: [{ role: "user", content: "Hi." }],
      tools: [
        {
          type: "function",
          function: { name: "look", description: text, parameters: { type: "object", properties: {} } },
        },
      ],
    })),
    post("agent, history and context", `/agents/${agentId}/run`, (text) => ({
      input: "Well?",
      history: [{ role: "user", content: text }],
      context: { id: text },
    })),
    post("composite", "/composite/execute", (input) => {
      return { pattern: "chain-of-thought", profile: "coding", input, models: [model] };
    }),
    post("ingest, text", "/rag/ingest", (text) => ({ content: `Note: ${text}`, title: "Note" })),
    post("ingest, title", "/rag/ingest", (title) => ({ content: "A note.", title }), { asksNone: true }),
    post(
      "ingest, metadata",
      "/rag/ingest",
      (text) => ({ content: "A note.", title: "Note", metadata: { about: text } }),
      { asksNone: true },
    ),
    post("answer from documents", "/rag/answer", (query) => ({ query, model, minCoverage: 0 }), { asksNone: true }),
    {
      name: "rating of an answer",
      asksNone: true,
      async send(comment) {
        // No document answers it, so that no model is asked.
        const answered = await member.post("/rag/answer", { query: "zyzzogeton quokka", model, minCoverage: 1 });
        if (answered.status !== 200) return toOutcome(answered);
        const rating = { logId: answered.string("logId"), thumb: "down", comment };
        return toOutcome(await member.post("/rag/feedback", rating));
      },
    },
    post("event", "/events/note", (text) => ({ data: { text } }), { asksNone: true }),
    post("event's id", "/events/note", (id) => ({ id }), { asksNone: true, isExact: true }),
    post("query", "/rag/query", (query) => ({ query }), { asksNone: true }),
    ...disguisedPaths(post),
    {
      name: "input that looks sealed",
      async send(text) {
        const input = {
          text: "",
          signature: text,
          source: { type: "base64", data: text },
          call: { type: "tool_use", call_id: text },
        };
        const started = await member.post(`/workflows/${sealedId}/execute`, { input });
        if (started.status !== 202) return toOutcome(started);
        return toOutcome(await reachEnd(member, `/workflows/${sealedId}/runs/${started.string("runId")}`));
      },
    },
    ...(await morePaths(member, { agentId, post, ...clients })),
    {
      name: "MCP tool",
      async send(text) {
        const call = { jsonrpc: "2.0", id: 1, method: "tools/call" };
        const args = { model, messages: [{ role: "user", content: text }] };
        const headers = { accept: "application/json, text/event-stream" };
        const answered = await member.post(
          "/mcp",
          { ...call, params: { name: "svc_chat", arguments: args } },
          { headers },
        );
        return {
          said: answered.text,
          ...(answered.text.includes("compliance_blocked") && { refusal: "compliance_blocked" }),
        };
      },
    },
  ];
}

/** What visitors of a page say: to a key that only chats, to one that answers from documents, and to an agent that searches. */
async function widgetPaths({ member, admin, clientOf }: Clients): Promise<GuardedPath[]> {
  const collection = "visitors";
  // Whatever is asked besides, the documents hold enough of it for an answer.
  const content =
    "Gardeners prune apple trees during winter, because sap rests, wounds heal slowly, and branches without leaves show their shape.";
  await member.post("/rag/ingest", { content, title: "Trees", collection });
  const tools = [{ type: "rag_query", config: { collection } }];
  const agent = { name: "Desk", systemPrompt: "Say it again.", model, tools };
  const agentId = (await member.post("/agents", agent)).string("agentId");
  const scopes = {
    widget: { models: [model] },
    "widget, documents": { models: [model], collections: [collection] },
    "widget, agent": { agentId, collections: [collection] },
  };
  const paths = Object.entries(scopes).map(async ([name, scope]) => {
    const visitor = clientOf((await admin.post("/ai/widget/key", scope)).string("key"));
    const asked = "agentId" in scope ? defaultModelAlias : model;
    return [...eachForm()]
      .filter(({ surface }) => surface.path === "/ai/chat")
      .map((form) => chatPath(visitor, { ...form, name, model: asked, preface: `${content} ` }));
  });
  return (await Promise.all(paths)).flat();
}

type Form = ReturnType<typeof eachForm> extends Generator<infer T> ? T : never;
type Chat = Form & { name: string; model: string; preface?: string };

const chatPath = (client: ApiClient, { name, surface, isStream, preface = "", ...chat }: Chat): GuardedPath => ({
  name: `${name}${isStream ? ", streamed" : ""}`,
  async send(text) {
    const messages = [{ role: "user", content: `${preface}${text}` }];
    const { error, ...said } = await askSurface(client, surface, isStream, { model: chat.model, messages });
    return { said: JSON.stringify(said), ...(error && { refusal: error.code }) };
  },
});
