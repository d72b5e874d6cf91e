import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

type WireMessage = {
  role: "system" | "user" | "assistant" | "tool";
  content: string | null;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
};

/** A chat request of an agent, as the upstream sees it. */
export type AgentCall = {
  model: string;
  messages: WireMessage[];
  tools: { function: { name: string; description: string; parameters: unknown } }[];
  maxTokens: number | undefined;
  /** Which answer of the run this is, from 1. */
  turn: number;
  /** The last message of the user. */
  input: string;
  /** Resolves when the other side has its answer, or has gone. */
  ended: Promise<"answered" | "left">;
};

/** What the model says: a text, tool calls, both, or a status to fail with. `arguments` is sent as it is where it is a text. */
export type AgentAnswer = {
  text?: string;
  reasoning?: string;
  calls?: { id?: string; name: string; arguments: object | string }[];
  usage?: { prompt_tokens: number; completion_tokens: number };
  /** Its finish reason, where that is not what the answer looks like. */
  finish?: string;
  status?: number;
};
export type AgentScript = (call: AgentCall) => AgentAnswer | Promise<AgentAnswer>;

export type AgentUpstream = {
  url: string;
  calls: AgentCall[];
  /** Sets the script and forgets the calls. */
  play(script: AgentScript): void;
  close(): Promise<void>;
};

/** A server on loopback that speaks OpenAI's chat format and plays a model that calls tools. */
export async function startAgentUpstream(): Promise<AgentUpstream> {
  const calls: AgentCall[] = [];
  let script: AgentScript = () => ({ text: "ok" });
  const server = createServer(async (request, response) => {
    const call = toCall(await readBody(request), response);
    calls.push(call);
    const answer = await script(call);
    if (!response.destroyed) send(response, call.model, answer);
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

type WireBody = {
  model: string;
  messages: WireMessage[];
  tools?: AgentCall["tools"];
  max_tokens?: number;
  max_completion_tokens?: number;
};

function toCall(body: WireBody, response: ServerResponse): AgentCall {
  const asked = body.messages.findLastIndex(({ role }) => role === "user");
  const ended = once(response, "close").then((): "answered" | "left" =>
    response.writableFinished ? "answered" : "left",
  );
  return {
    model: body.model,
    messages: body.messages,
    tools: body.tools ?? [],
    maxTokens: body.max_completion_tokens ?? body.max_tokens,
    turn: body.messages.slice(asked).filter(({ role }) => role === "assistant").length + 1,
    input: body.messages[asked]?.content ?? "",
    ended,
  };
}

async function readBody(request: IncomingMessage): Promise<WireBody> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}

function send(
  response: ServerResponse,
  model: string,
  { text, reasoning, calls = [], usage, finish, status = 200 }: AgentAnswer,
): void {
  response.writeHead(status, { "content-type": "application/json" });
  if (status !== 200) {
    response.end(JSON.stringify({ error: { message: "scripted", type: "server_error", code: "scripted" } }));
    return;
  }
  const toolCalls = calls.map(({ id, name, arguments: args }, index) => ({
    id: id ?? `call_${index}`,
    type: "function",
    function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) },
  }));
  const message = {
    role: "assistant",
    content: text ?? null,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    ...(calls.length > 0 ? { tool_calls: toolCalls } : {}),
  };
  const { prompt_tokens, completion_tokens } = usage ?? { prompt_tokens: 10, completion_tokens: 5 };
  response.end(
    JSON.stringify({
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1,
      model,
      choices: [{ index: 0, message, finish_reason: finish ?? (calls.length > 0 ? "tool_calls" : "stop") }],
      usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
    }),
  );
}

/** Lets the model answer when `open` is called; `asked` resolves once it was asked. */
export function holdAnswer(upstream: Pick<AgentUpstream, "play">, text: string) {
  const asked = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  upstream.play(async () => {
    asked.resolve();
    await opened.promise;
    return { text };
  });
  return { asked: asked.promise, open: opened.resolve };
}
