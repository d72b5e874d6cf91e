import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * The upstream of the benches of chats and streams: the smallest server that answers in OpenAI's wire format, at once or as a
 * stream. A prompt may ask for a stream by a name: it then sends that name with a number, a word as often and for as long as
 * the prompt says. Answers over IPC how many streams are open.
 */
const tokens = 32;
const usage = { prompt_tokens: 60, completion_tokens: tokens, total_tokens: 60 + tokens };
const head = { id: "chatcmpl-bench", created: 0, model: "bench" };
const completion = JSON.stringify({
  ...{ ...head, object: "chat.completion", usage },
  choices: [{ index: 0, message: { role: "assistant", content: "word ".repeat(tokens) }, finish_reason: "stop" }],
});
const event = (more: object) => `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...more })}\n\n`;
const chunk = (delta: object, finish: string | null) =>
  event({ choices: [{ index: 0, delta, finish_reason: finish }] });
const word = chunk({ content: "word " }, null);
const ending = `${chunk({}, "stop")}${event({ choices: [], usage })}data: [DONE]\n\n`;

/** What a stream says, how many words, and how often. */
function readStream(body: string) {
  const [, name, words, everyMs] = /stream (\w+) of (\d+) words every (\d+) ms/.exec(body) ?? [];
  const say = (n: number) => (name === undefined ? word : chunk({ content: `${name}:${n} ` }, null));
  return { say, words: Number(words ?? tokens), everyMs: Number(everyMs ?? 2) };
}

let open = 0;
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
    const { say, words, everyMs } = readStream(body);
    open += 1;
    let said = 0;
    response.writeHead(200, { "content-type": "text/event-stream" });
    const timer = setInterval(() => {
      if (said < words) response.write(say(said++));
      else {
        clearInterval(timer);
        response.end(ending);
      }
    }, everyMs);
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
