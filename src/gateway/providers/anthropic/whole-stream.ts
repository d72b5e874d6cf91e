type Block = Record<string, unknown>;

const toEvent = (type: string, fields: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

/** A whole message as the events that a stream would have had, for a reader that has asked for a stream. */
export function toMessageStream(message: Record<string, unknown>): string {
  const { content, stop_reason, stop_sequence = null, usage } = message;
  const blocks: Block[] = Array.isArray(content) ? content : [];
  const begun = { ...message, content: [], stop_reason: null, stop_sequence: null };
  return [
    toEvent("message_start", { message: begun }),
    ...blocks.flatMap((block, index) => [
      toEvent("content_block_start", { index, content_block: emptied(block) }),
      ...deltasOf(block).map((delta) => toEvent("content_block_delta", { index, delta })),
      toEvent("content_block_stop", { index }),
    ]),
    toEvent("message_delta", { delta: { stop_reason, stop_sequence }, usage }),
    toEvent("message_stop", {}),
  ].join("");
}

/** A block as it begins. Those of kinds that are not streamed in parts are whole at once. */
function emptied(block: Block): Block {
  if (block.type === "text") return { ...block, text: "" };
  if (block.type === "thinking") return { ...block, thinking: "", signature: "" };
  return block.type === "tool_use" ? { ...block, input: {} } : block;
}

function deltasOf({ type, text, thinking, signature, input }: Block): object[] {
  if (type === "text") return [{ type: "text_delta", text }];
  if (type === "tool_use") return [{ type: "input_json_delta", partial_json: JSON.stringify(input ?? {}) }];
  if (type !== "thinking") return [];
  return [
    { type: "thinking_delta", thinking },
    { type: "signature_delta", signature },
  ];
}
