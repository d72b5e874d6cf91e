import { startRecordingUpstream } from "./recording-upstream.ts";

type Asked = {
  stream?: boolean;
  input?: string | readonly unknown[];
  messages?: { role: string; content: unknown }[];
  tools?: unknown[];
  documents?: readonly string[];
};

/** What the model answers to a text; `calls` are arguments of a call of the tool that was offered. */
export type GuardScript = (said: string) => { text?: string; reasoning?: string; calls?: string; cut?: number };

/** A server that speaks OpenAI's chat and embeddings, and says again what it was asked, in deltas of `cut` characters. */
export async function startGuardUpstream() {
  const upstream = await startRecordingUpstream();
  let script: GuardScript = (said) => ({ text: `You said: ${said}` });
  upstream.answer((raw) => {
    const asked: Asked = JSON.parse(raw);
    if (asked.documents) {
      const results = asked.documents.map((_, index) => ({ index, relevance_score: 0.5 }));
      return { pieces: [JSON.stringify({ results })] };
    }
    if (typeof Object([asked.input].flat()[0]).role === "string") return { pieces: [JSON.stringify(toResponse(raw))] };
    if (asked.input !== undefined) return { pieces: [JSON.stringify(toEmbeddings(asked.input))] };
    const last = asked.messages?.findLast(({ role }) => role === "user")?.content;
    const said = typeof last === "string" ? last : JSON.stringify(last ?? "");
    const answer = script(said);
    if (asked.stream !== true) return { pieces: [JSON.stringify(toCompletion(answer))] };
    const headers = { "content-type": "text/event-stream" };
    return {
      headers,
      pieces: toChunks(answer).map((data) => `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`),
    };
  });
  return {
    ...upstream,
    play(next: GuardScript): void {
      script = next;
    },
  };
}

const usage = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 };

function toCompletion({ text = "", reasoning, calls }: ReturnType<GuardScript>) {
  const tool_calls = calls && [{ id: "call_1", type: "function", function: { name: "lookup", arguments: calls } }];
  const message = {
    role: "assistant",
    content: text,
    ...(reasoning && { reasoning_content: reasoning }),
    ...(tool_calls && { tool_calls }),
  };
  const choices = [{ index: 0, message, finish_reason: calls ? "tool_calls" : "stop" }];
  return { id: "chatcmpl-1", object: "chat.completion", created: 1, model: "m", choices, usage };
}

function toChunks({ text = "", reasoning = "", calls = "", cut = 3 }: ReturnType<GuardScript>): (object | string)[] {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason }],
  });
  const piecesOf = (whole: string) => whole.match(new RegExp(`[^]{1,${cut}}`, "g")) ?? [];
  const begun = { index: 0, id: "call_1", type: "function", function: { name: "lookup", arguments: "" } };
  return [
    chunk({ role: "assistant", content: "" }),
    ...piecesOf(reasoning).map((piece) => chunk({ reasoning_content: piece })),
    ...piecesOf(text).map((piece) => chunk({ content: piece })),
    ...(calls === "" ? [] : [chunk({ tool_calls: [begun] })]),
    ...piecesOf(calls).map((piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
    chunk({}, calls === "" ? "stop" : "tool_calls"),
    { ...chunk({}), choices: [], usage },
    "[DONE]",
  ];
}

function toResponse(raw: string) {
  const content = [{ type: "output_text", text: `You said: ${raw}`, annotations: [] }];
  const output = [{ type: "message", id: "msg_1", role: "assistant", status: "completed", content }];
  const counted = { input_tokens: 5, output_tokens: 5, total_tokens: 10 };
  return { id: "resp_1", object: "response", created_at: 1, status: "completed", model: "m", output, usage: counted };
}

function toEmbeddings(input: string | readonly unknown[]) {
  const data = [input].flat().map((_, index) => ({
    object: "embedding",
    index,
    embedding: Array.from({ length: 8 }, (_, at) => (at + index) / 10),
  }));
  return { object: "list", data, model: "m", usage: { prompt_tokens: 1, total_tokens: 1 } };
}
