import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The upstream of the chat bench: the smallest server that answers in OpenAI's wire format, at once or as a stream. */
const tokens = 32;
const completion = JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion",
  created: 0,
  model: "bench",
  choices: [{ index: 0, message: { role: "assistant", content: "word ".repeat(tokens) }, finish_reason: "stop" }],
  usage: { prompt_tokens: 60, completion_tokens: tokens, total_tokens: 60 + tokens },
});
const chunk = (delta: object, finish: string | null) =>
  `data: ${JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion.chunk", created: 0, model: "bench", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const word = chunk({ content: "word " }, null);
const ending = `${chunk({}, "stop")}data: ${JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion.chunk", created: 0, model: "bench", choices: [], usage: { prompt_tokens: 60, completion_tokens: tokens, total_tokens: 60 + tokens } })}\n\ndata: [DONE]\n\n`;

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (part: string) => {
    body += part;
  });
  request.on("end", () => {
    if (!body.includes('"stream":true')) {
      response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(completion) });
      response.end(completion);
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    let sent = 0;
    const timer = setInterval(() => {
      sent += 1;
      if (sent < tokens) response.write(word);
      else {
        clearInterval(timer);
        response.end(ending);
      }
    }, 2);
    response.on("close", () => clearInterval(timer));
  });
});
server.listen(0, "127.0.0.1", () => {
  process.send?.({ type: "ready", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
process.on("SIGTERM", () => process.exit(0));
process.on("disconnect", () => process.exit(0));
