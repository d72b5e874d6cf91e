import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { parentPort } from "node:worker_threads";

/** What is to be asked: a chat at an address, streamed by a key. */
export type AskedStream = { url: string; key: string; body: object };
/** When its first text and its end arrived, in ms, and how long that text is. */
export type TakenStream = { firstMs: number; wholeMs: number; characters: number };

const words = "the pump moves water through a valve and the motor turns slowly while nobody looks at it ".split(" ");
const FIRST_MS = 60;
const EACH_MS = 15;

/** A thread with a provider that streams words, and a client that reads streams: so that the first thread has the product alone. */
if (parentPort !== null) {
  const port = parentPort;
  const provider = createServer(async (request, response) => {
    let asked = "";
    for await (const part of request) asked += part;
    const isSlow = asked.includes("slowly, please");
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (isSlow) await delay(FIRST_MS);
    const send = (choices: object[], more: object = {}) =>
      response.write(
        `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices, ...more })}\n\n`,
      );
    for (let at = 0; at < (isSlow ? 12 : 3_000); at += 1) {
      send([{ index: 0, delta: { content: `${words[at % (words.length - 1)]} ` }, finish_reason: null }]);
      if (isSlow) await delay(EACH_MS);
      else if (at % 50 === 0) await delay(0);
    }
    send([{ index: 0, delta: {}, finish_reason: "stop" }]);
    send([], { usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 } });
    response.end("data: [DONE]\n\n");
  });
  provider.listen(0, "127.0.0.1");
  await once(provider, "listening");
  port.postMessage({ port: (provider.address() as AddressInfo).port });
  port.on("message", async ({ url, key, body }: AskedStream) => {
    const begun = performance.now();
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const answered = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    let said = "";
    let firstMs = 0;
    for await (const part of answered.body ?? []) {
      said += Buffer.from(part).toString();
      if (firstMs === 0 && said.includes("the")) firstMs = performance.now() - begun;
    }
    const taken: TakenStream = { firstMs, wholeMs: performance.now() - begun, characters: said.length };
    port.postMessage(taken);
  });
}
