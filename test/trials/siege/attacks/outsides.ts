import type { RequestListener } from "node:http";
import { type Attack, flood, idOf, prepared } from "../attack.ts";
import { bodyOf } from "../outside.ts";
import { addOwnModel, endlessStream, sendJson, speaking } from "../own-model.ts";

const DRIP_MS = 1_000;
const later = { prefer: "respond-async" };
const chat = (model: string) => ({ model, messages: [{ role: "user", content: "Tell a story." }] });

/** Begins to answer each call, and sends a letter a second for ever. */
const dripping: RequestListener = (request, response) => {
  request.resume();
  response.writeHead(200, { "content-type": "text/plain" }).write("a");
  const timer = setInterval(() => response.write("a"), DRIP_MS);
  response.on("close", () => clearInterval(timer));
};

/** A server of 64 tools a page whose schemas are as long as they may be; each page takes two seconds, and names a next one. */
function makeToolServer(): RequestListener {
  const properties = Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`field${n}`, { type: "string" }]));
  const tools = Array.from({ length: 64 }, (_, n) => ({
    name: `tool_${n}`,
    description: "d".repeat(30_000),
    inputSchema: { type: "object", properties },
  }));
  const about = { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } };
  const result = JSON.stringify({ ...about, tools, nextCursor: "more" });
  return async (request, response) => {
    const { id } = ((await bodyOf(request)) ?? {}) as { id?: number };
    if (id === undefined) return void response.writeHead(202).end();
    setTimeout(() => sendJson(response, `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`), 2_000);
  };
}

/** Attacks by what a tenant has outside: receivers, providers, pages, servers of tools. */
export const outsideAttacks: readonly Attack[] = [
  {
    name: "dripping-receiver",
    about: "callbacks, 240 and more, to a receiver that drips",
    async run({ member, outside, signal }) {
      outside.answer(dripping);
      await flood(signal, 16, (turn) => {
        const json = { content: `Line ${turn}.`, callback: { url: `${outside.origin}/${turn}` } };
        return member.call("POST", "/rag/ingest", { json, headers: later });
      });
    },
  },
  {
    name: "dripping-sources",
    about: "sources by URL whose server drips",
    async run({ member, outside, signal }) {
      outside.answer(dripping);
      await flood(signal, 16, (turn) =>
        member.call("POST", "/rag/ingest", { json: { url: `${outside.origin}/${turn}.txt` }, headers: later }),
      );
    },
  },
  prepared({
    name: "large-model-answers",
    about: "answers of 15 MB by a custom provider, 90 at once",
    prepare(field) {
      const text = "x".repeat(15_000_000);
      return addOwnModel(
        field,
        speaking(() => ({ text })),
      );
    },
    run: ({ member, signal }, model) => flood(signal, 90, () => member.call("POST", "/ai/chat", { json: chat(model) })),
  }),
  prepared({
    name: "endless-deltas",
    about: "90 streams of a custom provider that sends one letter after the other, as fast as it is read",
    prepare: (field) => addOwnModel(field, endlessStream("a")),
    async run(field, model) {
      const json = { ...chat(model), stream: true };
      await flood(field.signal, 90, () => field.member.readSlowly("/ai/chat", 1e9, { method: "POST", json }));
    },
  }),
  prepared({
    name: "large-tool-lists",
    about: "agents with a server of tools whose lists have 3.8 MB a page, and take two seconds each",
    async prepare(field) {
      const { member, outside } = field;
      const listTools = makeToolServer();
      const say = speaking(() => ({ text: "Done." }));
      const model = await addOwnModel(field, (request, response) =>
        (request.url?.startsWith("/mcp") ? listTools : say)(request, response),
      );
      const tools = Array.from({ length: 4 }, (_, n) => ({
        type: "mcp",
        name: `server${n}`,
        config: { url: `${outside.origin}/mcp/${n}` },
      }));
      const json = { name: "collector", model, systemPrompt: "Go.", tools };
      return `/agents/${idOf(await member.call("POST", "/agents", { json }), "agentId")}/run`;
    },
    run: ({ member, signal }, path) =>
      flood(signal, 16, () => member.call("POST", path, { json: { input: "Go." }, headers: later })),
  }),
];
