import { type GuardedPath, model } from "./guarded-paths.ts";

type Post = (name: string, path: string, toBody: (text: string) => object, kind?: Partial<GuardedPath>) => GuardedPath;

/** An object of a caller's own that looks like one of a vendor's wire, whose fields are ids, are sealed, or are bytes. */
const disguised = (text: string) => ({
  type: "tool_use",
  signature: text,
  call_id: text,
  tool_use_id: text,
  item_id: text,
  encrypted_content: text,
  source: { type: "base64", media_type: "image/png", data: text },
  sound: { type: "input_audio", data: text },
  thought: { type: "thinking", signature: text },
  more: { type: "redacted_thinking", data: text },
});
const asksNone = true;

/** Texts in fields that vendors' wires have for what is no text. */
export function disguisedPaths(post: Post): GuardedPath[] {
  const hi = { role: "user", content: "Look it up." };
  return [
    post("tool call's id", "/ai/chat", (id) => ({
      model,
      messages: [
        hi,
        {
          role: "assistant",
          content: "",
          tool_calls: [{ id, type: "function", function: { name: "look", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: id, content: "found" },
      ],
    })),
    post("tool call's id, stored", "/v1/responses", (call_id) => ({
      model,
      input: [
        { type: "function_call", call_id, name: "look", arguments: "{}" },
        { type: "function_call_output", call_id, output: "found" },
      ],
    })),
    post("arguments that look sealed", "/v1/messages", (text) => ({
      model,
      max_tokens: 50,
      messages: [
        hi,
        { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "look", input: disguised(text) }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "found" }] },
      ],
    })),
    post("parameters that look sealed", "/v1/chat/completions", (text) => ({
      model,
      messages: [hi],
      tools: [
        {
          type: "function",
          function: { name: "look", parameters: { type: "object", properties: { a: { default: disguised(text) } } } },
        },
      ],
    })),
    post("event that looks sealed", "/events/note", (text) => ({ data: disguised(text) }), { asksNone }),
    post(
      "metadata that looks sealed",
      "/rag/ingest",
      (text) => ({
        content: "A note.",
        title: "Note",
        metadata: { signature: text, call_id: text, encrypted_content: text },
      }),
      { asksNone },
    ),
  ];
}
