import { askSurface, eachForm } from "./four-surfaces.ts";
import type { ApiClient, ApiResponse } from "./http-client.ts";
import { pollUntil } from "./poll-until.ts";

/** What came of a text on a path: all that the caller got, and how it was refused, if it was. */
type Outcome = { said: string; refusal?: unknown };
export type GuardedPath = { name: string; send(text: string): Promise<Outcome> };

const model = "gpt-5.4-mini";
const ends = ["completed", "failed", "cancelled", "stopped"];

const toOutcome = ({ status, body, text }: Pick<ApiResponse, "status" | "body" | "text">): Outcome => {
  const code = Object(Object(body).error).code;
  return { said: text, ...(status >= 400 && { refusal: code ?? status }) };
};

const reachEnd = (member: ApiClient, path: string) =>
  pollUntil(async () => {
    const one = await member.get(path);
    return ends.includes(String(one.at("status"))) ? one : undefined;
  });

/** Every way by which a text gets to a model, or is kept. */
export async function guardedPaths(member: ApiClient): Promise<GuardedPath[]> {
  const agentId = (await member.post("/agents", { name: "Echo", systemPrompt: "Say it again.", model })).string(
    "agentId",
  );
  const steps = [{ type: "ai_completion", id: "first", model, prompt: "Say: {{ input.text }}" }];
  const workflowId = (await member.post("/workflows", { name: "Echo", steps })).string("workflowId");
  const post = (name: string, path: string, toBody: (text: string) => object): GuardedPath => ({
    name,
    send: async (text) => toOutcome(await member.post(path, toBody(text), { headers: { prefer: "wait=20" } })),
  });
  const chats = [...eachForm()].map(({ surface, isStream }) => ({
    name: `${surface.name}${isStream ? ", streamed" : ""}`,
    async send(text: string) {
      const messages = [{ role: "user", content: text }];
      const { error, ...said } = await askSurface(member, surface, isStream, { model, messages });
      return { said: JSON.stringify(said), ...(error && { refusal: error.code }) };
    },
  }));
  return [
    ...chats,
    post("responses, stored", "/v1/responses", (text) => ({ model, input: text })),
    {
      name: "responses, background",
      async send(text) {
        const asked = await member.post("/v1/responses", { model, input: text, background: true });
        if (asked.status !== 200) return toOutcome(asked);
        return toOutcome(await reachEnd(member, `/v1/responses/${asked.string("id")}`));
      },
    },
    post("conversation", "/v1/conversations", (text) => ({ items: [{ role: "user", content: text }] })),
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
    post("ingest, title", "/rag/ingest", (title) => ({ content: "A note.", title })),
    post("ingest, metadata", "/rag/ingest", (text) => ({
      content: "A note.",
      title: "Note",
      metadata: { about: text },
    })),
    post("answer from documents", "/rag/answer", (query) => ({ query, model, minCoverage: 0 })),
    {
      name: "rating of an answer",
      async send(comment) {
        // No document answers it, so that no model is asked.
        const answered = await member.post("/rag/answer", { query: "zyzzogeton quokka", model, minCoverage: 1 });
        if (answered.status !== 200) return toOutcome(answered);
        const rating = { logId: answered.string("logId"), thumb: "down", comment };
        return toOutcome(await member.post("/rag/feedback", rating));
      },
    },
    post("event", "/events/note", (text) => ({ data: { text } })),
    post("query", "/rag/query", (query) => ({ query })),
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
