import type { AddressInfo } from "node:net";
import { createParser } from "eventsource-parser";
import Koa from "koa";
import { Pool } from "undici";

/**
 * The anchor of the chat bench: Koa and undici with nothing else. It parses and checks the body, calls the upstream, and
 * maps the answer; a stream is parsed event by event and framed again.
 */
const upstream = new Pool(process.argv[2] ?? "", { connections: 256 });
const app = new Koa();
app.use(async (ctx) => {
  let text = "";
  ctx.req.setEncoding("utf8");
  for await (const part of ctx.req) text += part;
  const body = JSON.parse(text);
  if (!Array.isArray(body.messages)) ctx.throw(400);
  const response = await upstream.request({
    method: "POST",
    path: "/v1/chat/completions",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "bench", messages: body.messages, stream: body.stream === true }),
  });
  if (body.stream !== true) {
    const json = (await response.body.json()) as { choices: { message: { content: string } }[]; usage: unknown };
    ctx.body = { text: json.choices[0]?.message.content, choices: json.choices, usage: json.usage };
    return;
  }
  ctx.respond = false;
  ctx.res.writeHead(200, { "content-type": "text/event-stream" });
  let out = "";
  const parser = createParser({
    onEvent: ({ data }) => {
      if (data === "[DONE]") return;
      const delta = JSON.parse(data).choices[0]?.delta?.content;
      if (delta) out += `data: ${JSON.stringify({ delta: { content: delta }, done: false })}\n\n`;
    },
  });
  response.body.setEncoding("utf8");
  for await (const part of response.body) {
    parser.feed(part);
    if (out) ctx.res.write(out);
    out = "";
  }
  ctx.res.end('data: {"done":true}\n\n');
});
const server = app.listen(0, "127.0.0.1", () => {
  process.send?.({ type: "ready", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
process.on("SIGTERM", () => process.exit(0));
process.on("disconnect", () => process.exit(0));
