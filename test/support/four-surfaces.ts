import { type ApiClient, type ApiEvent, valueAt } from "./http-client.ts";

/** What a surface says of an answer, in one form. */
export type Said = {
  text: string;
  calls: { id: string; name: string; arguments: string }[];
  finish: unknown;
  own: unknown;
  input: unknown;
  output: unknown;
  costUsd: unknown;
  /** The error that it is, or that its stream ends with. */
  error?: { status: number; code: unknown; details: Record<string, unknown> };
};
type Call = { id: string; name: string; arguments: string };

const finishes: Record<string, string> = {
  end_turn: "stop",
  tool_use: "tool_calls",
  max_tokens: "length",
  max_output_tokens: "length",
  refusal: "content_filter",
};
const finishOf = (word: unknown) => finishes[String(word)] ?? word;

type Surface = { name: string; path: string; toBody(asked: Asked): object; read(body: unknown): Omit<Said, "error"> };
export type Asked = { model: string; tools?: boolean; schema?: boolean; messages?: object[] };

const parameters = { type: "object", properties: { q: { type: "string" } } };
const tools = ["lookup", "ping"].map((name) => ({ name, parameters }));
const schema = { type: "object", properties: { a: { type: "number" } }, required: ["a"] };
const question = [{ role: "user", content: "What is it?" }];

const chatBody = ({ model, messages = question, ...asked }: Asked) => ({
  model,
  messages,
  ...(asked.tools && { tools: tools.map((tool) => ({ type: "function", function: tool })) }),
  ...(asked.schema && { response_format: { type: "json_schema", json_schema: { name: "answer", schema } } }),
});

const callsOf = (calls: unknown): Call[] =>
  Array.isArray(calls)
    ? calls.map(({ id, function: { name, arguments: json } }) => ({ id, name, arguments: json }))
    : [];
const listOf = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value : []);

const chat: Surface = {
  name: "chat",
  path: "/ai/chat",
  toBody: chatBody,
  read: (body) => ({
    text: String(valueAt(body, "text") ?? ""),
    calls: callsOf(valueAt(body, "toolCalls")),
    finish: valueAt(body, "choices[0].finish_reason") ?? valueAt(body, "finishReason"),
    own: valueAt(body, "providerFinishReason"),
    input: valueAt(body, "inputTokens"),
    output: valueAt(body, "outputTokens"),
    costUsd: valueAt(body, "costUsd"),
  }),
};

export const completions: Surface = {
  name: "chat completions",
  path: "/v1/chat/completions",
  toBody: chatBody,
  read: (body) => ({
    text: String(valueAt(body, "choices[0].message.content") ?? ""),
    calls: callsOf(valueAt(body, "choices[0].message.tool_calls")),
    finish: valueAt(body, "choices[0].finish_reason"),
    own: valueAt(body, "providerFinishReason"),
    input: valueAt(body, "usage.prompt_tokens"),
    output: valueAt(body, "usage.completion_tokens"),
    costUsd: valueAt(body, "costUsd"),
  }),
};

const responses: Surface = {
  name: "responses",
  path: "/v1/responses",
  toBody: ({ model, messages = question, ...asked }) => ({
    model,
    input: messages,
    store: false,
    ...(asked.tools && { tools: tools.map((tool) => ({ type: "function", ...tool })) }),
    ...(asked.schema && { text: { format: { type: "json_schema", name: "answer", schema } } }),
  }),
  read: (body) => {
    const output = listOf(valueAt(body, "output"));
    const calls = output.filter(({ type }) => type === "function_call");
    const reason = valueAt(body, "incomplete_details.reason");
    const whole = calls.length > 0 ? "tool_calls" : "stop";
    return {
      text: output.map((item) => String(valueAt(item, "content[0].text") ?? "")).join(""),
      calls: calls.map(({ call_id, name, arguments: json }) => ({
        id: String(call_id),
        name: String(name),
        arguments: String(json),
      })),
      finish: valueAt(body, "status") === "completed" ? whole : finishOf(reason),
      own: valueAt(body, "providerFinishReason"),
      input: valueAt(body, "usage.input_tokens"),
      output: valueAt(body, "usage.output_tokens"),
      costUsd: valueAt(body, "costUsd"),
    };
  },
};

const messages: Surface = {
  name: "messages",
  path: "/v1/messages",
  toBody: ({ model, messages = question, ...asked }) => ({
    model,
    messages,
    max_tokens: 1_000,
    ...(asked.tools && { tools: tools.map(({ name }) => ({ name, input_schema: parameters })) }),
    ...(asked.schema && { output_config: { format: { type: "json_schema", schema } } }),
  }),
  read: (body) => {
    const content = listOf(valueAt(body, "content"));
    return {
      text: content.map(({ type, text }) => (type === "text" ? text : "")).join(""),
      calls: content.flatMap(({ type, id, name, input }) =>
        type === "tool_use" ? [{ id: String(id), name: String(name), arguments: JSON.stringify(input) }] : [],
      ),
      finish: finishOf(valueAt(body, "stop_reason")),
      own: valueAt(body, "providerFinishReason"),
      input: valueAt(body, "usage.input_tokens"),
      output: valueAt(body, "usage.output_tokens"),
      costUsd: valueAt(body, "costUsd"),
    };
  },
};

const surfaces = [chat, completions, responses, messages];

/** What each surface says, of an answer that it gives whole, and of one that it streams. */
export function* eachForm() {
  for (const surface of surfaces) for (const isStream of [false, true]) yield { surface, isStream };
}

export async function askSurface(client: ApiClient, surface: Surface, isStream: boolean, asked: Asked): Promise<Said> {
  const { path, toBody, read } = surface;
  if (!isStream) {
    const { status, body } = await client.post(path, toBody(asked));
    return status === 200 ? read(body) : { ...read({}), error: toError(status, body) };
  }
  const body = { ...toBody(asked), stream: true };
  const opened = await client.events("POST", path, { body }).catch(() => undefined);
  if (opened === undefined) {
    const { status, body: failed } = await client.post(path, body);
    return { ...read({}), error: toError(status, failed) };
  }
  const events = await Array.fromAsync(opened.events);
  const failed = events.find(({ data }) => valueAt(data, "error") ?? valueAt(data, "response.error"));
  const said = read(fold(path, events));
  return failed ? { ...said, error: toError(200, failed.data) } : said;
}

function toError(status: number, body: unknown) {
  const error = valueAt(body, "error") ?? valueAt(body, "response.error");
  return {
    status,
    code: valueAt(error, "code") ?? valueAt(body, "error.type"),
    details: Object(valueAt(error, "details")),
  };
}

/** The events of a stream as the body that the same answer has. */
function fold(path: string, events: readonly ApiEvent[]): unknown {
  const all = events.map(({ data }) => data);
  if (path === "/v1/responses")
    return all.map((data) => valueAt(data, "response")).findLast((response) => valueAt(response, "usage")) ?? {};
  if (path === "/v1/messages") return foldMessage(all);
  if (path === "/ai/chat") {
    const text = all.map((data) => valueAt(data, "delta.content") ?? "").join("");
    return { ...Object(all.findLast((data) => valueAt(data, "done") === true)), text };
  }
  return foldChunks(all);
}

function foldChunks(all: unknown[]): object {
  const calls: { id?: unknown; function: { name: string; arguments: string } }[] = [];
  for (const delta of all.flatMap((data) => listOf(valueAt(data, "choices[0].delta.tool_calls")))) {
    const at = Number(delta.index);
    calls[at] ??= { id: delta.id, function: { name: "", arguments: "" } };
    const call = calls[at];
    call.function.name += String(valueAt(delta, "function.name") ?? "");
    call.function.arguments += String(valueAt(delta, "function.arguments") ?? "");
  }
  const content = all.map((data) => valueAt(data, "choices[0].delta.content") ?? "").join("");
  const last = all.findLast((data) => valueAt(data, "choices[0].finish_reason"));
  const finish_reason = valueAt(last, "choices[0].finish_reason");
  return { ...Object(last), choices: [{ message: { content, tool_calls: calls }, finish_reason }], usage: undefined };
}

function foldMessage(all: unknown[]): object {
  const content: Record<string, unknown>[] = [];
  for (const data of all) {
    const at = Number(valueAt(data, "index"));
    const begun = valueAt(data, "content_block");
    if (begun) content[at] = { ...Object(begun), json: "" };
    const block = content[at];
    if (block === undefined) continue;
    block.text = `${block.text ?? ""}${valueAt(data, "delta.text") ?? ""}`;
    block.json = `${block.json}${valueAt(data, "delta.partial_json") ?? ""}`;
  }
  for (const block of content)
    if (block.type === "tool_use" && block.json) block.input = JSON.parse(String(block.json));
  const end = all.find((data) => valueAt(data, "type") === "message_delta");
  return { ...Object(end), ...Object(valueAt(end, "delta")), content };
}
