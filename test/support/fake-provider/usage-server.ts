import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";

type WireChat = {
  model: string;
  messages: { content: string }[];
  max_completion_tokens?: number;
  stream?: boolean;
};

export type CostlyProvider = {
  /** What an OpenAI client takes as base URL. */
  url: string;
  /** The chats that were asked, those of batches included, and the output tokens that each was charged. */
  chats: { request: WireChat; outputTokens: number; isBatched: boolean }[];
  /** The tokens that each call of embeddings was charged. */
  embeddings: number[];
  /**
   * Whether an answer ends at the limit that was sent with it, as with every real provider. Of embeddings: whether a token has
   * some bytes, as with every real tokenizer, or each byte is one.
   */
  honoursLimits(isHonoured: boolean): void;
  close(): Promise<void>;
};

/** The prompt that every answer tells. */
export const SPENT_PROMPT = 20;
/** The answer that every chat gets where no limit is kept to. */
export const SPENT_OUTPUT = 50_000;
/** Bytes of a token of an embedded text. */
const TOKEN_BYTES = 4;
/** Time to an answer, so that calls that are let in at the same time are under way at the same time. */
const THINKING_MS = 50;

/** OpenAI's chat, batches and embeddings on loopback: whatever is asked, the answer costs 50,000 output tokens, unless a limit is honoured. */
export async function startCostlyProvider(): Promise<CostlyProvider> {
  const chats: CostlyProvider["chats"] = [];
  const embeddings: number[] = [];
  const files: string[] = [];
  let isHonoured = true;

  const spend = (request: WireChat, isBatched: boolean) => {
    const limit = isHonoured ? (request.max_completion_tokens ?? SPENT_OUTPUT) : SPENT_OUTPUT;
    const outputTokens = Math.min(limit, SPENT_OUTPUT);
    chats.push({ request, outputTokens, isBatched });
    const usage = { prompt_tokens: SPENT_PROMPT, completion_tokens: outputTokens };
    return { usage, finish_reason: outputTokens < SPENT_OUTPUT ? "length" : "stop" };
  };
  const answerWhole = (request: WireChat, isBatched: boolean) => {
    const { usage, finish_reason } = spend(request, isBatched);
    const message = { role: "assistant", content: "Answer: a long one." };
    return { id: "chatcmpl-1", model: request.model, choices: [{ index: 0, message, finish_reason }], usage };
  };
  const answerLine = (text: string) => {
    const { custom_id, body } = JSON.parse(text);
    return JSON.stringify({ custom_id, response: { status_code: 200, body: answerWhole(body, true) }, error: null });
  };
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const bytes = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
    const path = request.url ?? "";
    const send = (body: unknown) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(typeof body === "string" ? body : JSON.stringify(body));
    };
    const at = Number(/_(\d+)/.exec(path)?.[1]);
    if (path === "/v1/files") {
      const headers = { "content-type": request.headers["content-type"] ?? "" };
      const file = (await new Response(bytes, { headers }).formData()).get("file");
      return send({ id: `file_${files.push(file instanceof File ? await file.text() : "") - 1}` });
    }
    if (path === "/v1/batches") {
      const { input_file_id: id, metadata } = JSON.parse(bytes.toString("utf8"));
      return send({ id: `batch_${/_(\d+)/.exec(id)?.[1]}`, status: "validating", metadata });
    }
    if (path.startsWith("/v1/batches/")) {
      return send({ id: `batch_${at}`, status: "completed", output_file_id: `file_${at}` });
    }
    if (path.endsWith("/content")) {
      const lines = (files[at] ?? "").split("\n").filter((line) => line !== "");
      return send(`${lines.map(answerLine).join("\n")}\n`);
    }
    await delay(THINKING_MS);
    if (path === "/v1/embeddings") {
      const { model, input }: { model: string; input: string[] } = JSON.parse(bytes.toString("utf8"));
      const tokens = Math.floor(Buffer.byteLength(input.join("")) / (isHonoured ? TOKEN_BYTES : 1));
      embeddings.push(tokens);
      const data = input.map((_, index) => ({ index, embedding: [1, 0] }));
      return send({ model, data, usage: { prompt_tokens: tokens } });
    }
    const chat: WireChat = JSON.parse(bytes.toString("utf8"));
    if (chat.stream !== true) return send(answerWhole(chat, false));
    const { usage, finish_reason } = spend(chat, false);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const events = [
      { choices: [{ index: 0, delta: { content: "A long one." } }] },
      { choices: [{ index: 0, delta: {}, finish_reason }] },
      { choices: [], usage },
    ];
    response.end(`${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")}data: [DONE]\n\n`);
  };
  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the provider has no port");
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    chats,
    embeddings,
    honoursLimits: (given) => {
      isHonoured = given;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
