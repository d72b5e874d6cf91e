import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { type Field, idOf } from "./attack.ts";
import { bodyOf } from "./outside.ts";

const NAME = "evil";
const MODEL = { id: "m", type: "chat", contextWindow: 1_000_000, inputUsdPerMTok: 0, outputUsdPerMTok: 0 };

/** What a model of the attacker's says: a text, or calls of tools. */
type Said = { text?: string; calls?: readonly { name: string; arguments: object }[] };
/** What a call of the model asked for, as far as attacks look at it. */
export type Asked = { messages: readonly { role: string }[]; tools: readonly { function: { name: string } }[] };

/** Adds a provider of the attacker's tenant whose one model is answered by `listener`. Returns the model's name. */
export async function addOwnModel({ owner, outside }: Field, listener: RequestListener): Promise<string> {
  outside.answer(listener);
  const json = { baseUrl: `${outside.origin}/v1`, key: "sk-evil-0123456789", wire: "openai-chat", models: [MODEL] };
  idOf(await owner.call("PUT", `/ai/providers/custom/${NAME}`, { json }), "name");
  return `${NAME}/${MODEL.id}`;
}

/** A model that says what `think` makes of each call, whole or as a stream, as it is asked to. */
export const speaking =
  (think: (asked: Asked) => Said): RequestListener =>
  async (request, response) => {
    const {
      messages = [],
      tools = [],
      stream,
    } = ((await bodyOf(request)) ?? {}) as Partial<Asked> & { stream?: boolean };
    const { text = "", calls = [] } = think({ messages, tools });
    const tool_calls = calls.map((call, index) => ({
      index,
      id: `call_${index}`,
      type: "function",
      function: { name: call.name, arguments: JSON.stringify(call.arguments) },
    }));
    const message = { role: "assistant", content: text, ...(calls.length > 0 ? { tool_calls } : {}) };
    const finish_reason = calls.length > 0 ? "tool_calls" : "stop";
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const common = { id: "c", created: 1, model: MODEL.id, usage };
    if (stream !== true) {
      const whole = { ...common, object: "chat.completion", choices: [{ index: 0, message, finish_reason }] };
      return sendJson(response, JSON.stringify(whole));
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const last = { ...common, object: "chat.completion.chunk", choices: [{ index: 0, delta: message, finish_reason }] };
    response.end(`data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`);
  };

/** A model that streams the same small piece of text again and again, as fast as it is read, and never ends. */
export function endlessStream(text: string): RequestListener {
  const delta = {
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    choices: [{ index: 0, delta: { content: text } }],
  };
  const pieces = Buffer.from(`data: ${JSON.stringify(delta)}\n\n`.repeat(500));
  return (request: IncomingMessage, response: ServerResponse) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    const more = () => {
      while (!response.destroyed && response.write(pieces));
    };
    response.on("drain", more);
    more();
  };
}

export function sendJson(response: ServerResponse, json: string): void {
  response.writeHead(200, { "content-type": "application/json" }).end(json);
}
