import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * The upstream of the streams bench: each stream has the name in its prompt, and sends that name with a number, a
 * word as often and for as long as the prompt asks. Answers over IPC how many streams are open.
 */
let open = 0;

const chunk = (delta: object, finish: string | null) =>
  `data: ${JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion.chunk", created: 0, model: "bench", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (part: string) => {
    body += part;
  });
  request.on("end", () => {
    const [, name = "", words = "0", everyMs = "50"] = /stream (\w+) of (\d+) words every (\d+) ms/.exec(body) ?? [];
    open += 1;
    let said = 0;
    response.writeHead(200, { "content-type": "text/event-stream" });
    const timer = setInterval(() => {
      if (said < Number(words)) {
        response.write(chunk({ content: `${name}:${said} ` }, null));
        said += 1;
        return;
      }
      clearInterval(timer);
      response.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
    }, Number(everyMs));
    response.on("close", () => {
      clearInterval(timer);
      open -= 1;
    });
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  process.send?.({ type: "ready", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
process.on("message", (message: { type: string }) => {
  if (message.type === "open-streams") process.send?.({ type: "answer", open });
});
process.on("SIGTERM", () => process.exit(0));
process.on("disconnect", () => process.exit(0));
