import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** The upstream of the agents bench: thinks for 200 ms, or for its argument, asks for the calculator four times a run, and then answers; without tools it answers at once. */
const thinkMs = Number(process.argv[2] ?? 200);
const toolCalls = 4;
const usage = { prompt_tokens: 200, completion_tokens: 30, total_tokens: 230 };

type Body = { messages: { role: string }[]; tools?: unknown[] };

function answer({ messages, tools }: Body): object {
  const asked = messages.filter(({ role }) => role === "assistant").length;
  if (tools === undefined || asked >= toolCalls) return { role: "assistant", content: "It is 5." };
  const call = { name: "calculator", arguments: JSON.stringify({ expression: `${asked} + 1` }) };
  const tool_calls = [{ id: `call_${asked}`, type: "function", function: call }];
  return { role: "assistant", content: "I add one.", tool_calls };
}

const server = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const message = answer(JSON.parse(Buffer.concat(parts).toString("utf8")));
  await delay(thinkMs);
  const finish_reason = "tool_calls" in message ? "tool_calls" : "stop";
  const choices = [{ index: 0, message, finish_reason }];
  response.writeHead(200, { "content-type": "application/json" });
  response.end(
    JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion", created: 0, model: "bench", choices, usage }),
  );
});
server.listen(0, "127.0.0.1", () => {
  process.send?.({ type: "ready", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, thinkMs });
});
process.on("SIGTERM", () => process.exit(0));
process.on("disconnect", () => process.exit(0));
