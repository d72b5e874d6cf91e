import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

/** A chat request as the upstream sees it. */
export type UpstreamCall = {
  model: string;
  /** The system message, without which no composite call comes. */
  system: string;
  user: string;
  temperature: number | undefined;
  /** Calls that were being answered when this one came, itself included. */
  inFlight: number;
  /** Resolves when the other side has its answer, or has gone. */
  ended: Promise<"answered" | "left">;
};

/** The text to answer, or a status to fail with. */
export type Script = (call: UpstreamCall) => string | { status: number } | Promise<string | { status: number }>;

export type ScriptedUpstream = {
  url: string;
  calls: UpstreamCall[];
  /** Sets the script and forgets the calls. */
  play(script: Script): void;
  close(): Promise<void>;
};

/** A server on loopback that speaks OpenAI's chat format and answers each call as a script says. */
export async function startScriptedUpstream(): Promise<ScriptedUpstream> {
  const calls: UpstreamCall[] = [];
  let script: Script = () => "ok";
  let inFlight = 0;
  const server = createServer(async (request, response) => {
    const { model, messages, temperature } = await readBody(request);
    inFlight += 1;
    const ended = once(response, "close").then(() => {
      inFlight -= 1;
      return response.writableFinished ? ("answered" as const) : ("left" as const);
    });
    const textOf = (role: string) => messages.find((message) => message.role === role)?.content ?? "";
    const call = { model, system: textOf("system"), user: textOf("user"), temperature, inFlight, ended };
    calls.push(call);
    send(response, model, await script(call));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the upstream has no port");
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    calls,
    play(next) {
      calls.length = 0;
      script = next;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

type WireBody = { model: string; messages: { role: string; content: string }[]; temperature?: number };

async function readBody(request: IncomingMessage): Promise<WireBody> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}

function send(response: ServerResponse, model: string, answer: string | { status: number }): void {
  if (response.destroyed) return;
  const isText = typeof answer === "string";
  response.writeHead(isText ? 200 : answer.status, { "content-type": "application/json" });
  const error = { error: { message: "scripted", type: "server_error", code: "scripted" } };
  const completion = {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model,
    choices: [{ index: 0, message: { role: "assistant", content: answer }, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  };
  response.end(JSON.stringify(isText ? completion : error));
}
