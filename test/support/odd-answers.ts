import type { Scripted } from "./recording-upstream.ts";

/** What a lenient server answers, in the form in which it sends it, streamed or not. */
export type OddAnswer = { stream: Scripted; json: Scripted };

const JSON_TYPE = { "content-type": "application/json" };
const EVENTS = { "content-type": "text/event-stream" };

export const jsonOf = (body: unknown, status = 200, headers: Record<string, string> = {}): Scripted => ({
  status,
  headers: { ...JSON_TYPE, ...headers },
  pieces: [typeof body === "string" ? body : JSON.stringify(body)],
});
export const eventsOf = (...pieces: string[]): Scripted => ({ headers: EVENTS, pieces });
const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
export const DONE = "data: [DONE]\n\n";

/** The same body whether a stream was asked for or not. */
export const everywhere = (body: unknown, status = 200, headers = {}): OddAnswer => {
  const scripted = jsonOf(body, status, headers);
  return { stream: scripted, json: scripted };
};

const asked = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
export const chunk = (delta: object, finish: unknown = null, more: object = {}) =>
  data({ id: "c1", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }], ...more });

type ChatAnswer = { message: object; deltas?: object[]; finish?: unknown; usage?: unknown; choice?: object };

/** Of OpenAI's chat completions. */
export function chatAnswer({
  message,
  deltas = [message],
  finish = "stop",
  usage = asked,
  choice,
}: ChatAnswer): OddAnswer {
  const whole = { role: "assistant", ...message };
  return {
    json: jsonOf({
      id: "c1",
      object: "chat.completion",
      choices: [{ index: 0, message: whole, finish_reason: finish, ...choice }],
      usage,
    }),
    stream: eventsOf(
      chunk({ role: "assistant" }),
      ...deltas.map((delta) => chunk(delta)),
      data({ id: "c1", choices: [{ index: 0, delta: {}, finish_reason: finish, ...choice }] }),
      data({ id: "c1", choices: [], usage }),
      DONE,
    ),
  };
}

const event = (type: string, fields: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

/** Of Anthropic's messages. */
export function messageAnswer(blocks: Record<string, unknown>[], stop: unknown, usage: object = {}): OddAnswer {
  const counted = { input_tokens: 10, output_tokens: 5, ...usage };
  const head = { id: "m1", type: "message", role: "assistant", model: "m" };
  return {
    json: jsonOf({ ...head, content: blocks, stop_reason: stop, usage: counted }),
    stream: eventsOf(
      event("message_start", { message: { ...head, content: [], usage: { ...counted, output_tokens: 1 } } }),
      ...blocks.flatMap((block, index) => [
        event("content_block_start", {
          index,
          content_block: block.type === "text" ? { type: "text", text: "" } : block,
        }),
        ...(block.type === "text"
          ? [event("content_block_delta", { index, delta: { type: "text_delta", text: block.text } })]
          : []),
        event("content_block_stop", { index }),
      ]),
      event("message_delta", { delta: { stop_reason: stop }, usage: counted }),
      event("message_stop", {}),
    ),
  };
}

/** Of OpenAI's responses. */
export function responseAnswer(output: Record<string, unknown>[], end: Record<string, unknown>): OddAnswer {
  const response = {
    id: "r1",
    object: "response",
    model: "m",
    error: null,
    output,
    usage: { input_tokens: 10, output_tokens: 5 },
    ...end,
  };
  return {
    json: jsonOf(response),
    stream: eventsOf(
      event("response.created", { response: { ...response, status: "in_progress", output: [] } }),
      ...output.flatMap((item, at) => [
        event("response.output_item.added", { output_index: at, item: { ...item, arguments: "" } }),
        ...(item.type === "message"
          ? [
              event("response.output_text.delta", {
                output_index: at,
                delta: (item.content as { text: string }[])[0]?.text,
              }),
            ]
          : []),
        event("response.output_item.done", { output_index: at, item }),
      ]),
      event(
        end.status === "failed"
          ? "response.failed"
          : end.status === "incomplete"
            ? "response.incomplete"
            : "response.completed",
        { response },
      ),
    ),
  };
}
