import { defined } from "../../../lib/defined.ts";
import { tryParseJson } from "../../../lib/try-parse-json.ts";
import type { AssistantPart, Content, ContentPart, Message, ToolCall } from "../../messages.ts";

type Source = { type: "base64"; media_type: string; data: string } | { type: "url"; url: string };
/** A block of a turn; reasoning stands in it as it came. */
export type Block = { cache_control?: { type: "ephemeral" } } & (
  | { type: "text"; text: string }
  | { type: "image"; source: Source }
  | { type: "document"; source: Source; title?: string }
  | { type: "tool_use"; id: string; name: string; input: object }
  | { type: "tool_result"; tool_use_id: string; content: string | Block[] }
  | Record<string, unknown>
);

/**
 * The blocks of a message ("Vision", "PDF support" and "Handle tool calls" of Anthropic's documentation). Empty text is
 * refused by the API, and an assistant that only called tools said nothing.
 */
export function toBlocks(message: Exclude<Message, { role: "system" }>): Block[] {
  if (message.role === "user") return toContentBlocks(message.content);
  if (message.role === "tool") {
    const content = typeof message.content === "string" ? message.content : toContentBlocks(message.content);
    return [{ type: "tool_result", tool_use_id: toOwnId(message.toolCallId), content }];
  }
  if (message.parts !== undefined) return message.parts.flatMap(toAssistantBlock);
  const text: Block[] = message.content === "" ? [] : [{ type: "text", text: message.content }];
  return [...text, ...(message.toolCalls ?? []).map(toToolUse)];
}

function toAssistantBlock(part: AssistantPart): Block[] {
  if (part.type === "reasoning") return [part.item];
  if (part.type === "tool-call") return [toToolUse(part)];
  return part.text === "" ? [] : [{ type: "text", text: part.text }];
}

const toContentBlocks = (content: Content): Block[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content.flatMap(toContentBlock);

function toContentBlock(part: ContentPart): Block[] {
  if (part.type === "text") return part.text === "" ? [] : [{ type: "text", text: part.text }];
  const source = toSource(part.url);
  return part.type === "image"
    ? [{ type: "image", source }]
    : [defined({ type: "document" as const, source, title: part.name })];
}

function toSource(url: string): Source {
  const [head, type] = /^data:([^;,]+);base64,/.exec(url) ?? [];
  if (head === undefined || type === undefined) return { type: "url", url };
  return { type: "base64", media_type: type, data: url.slice(head.length) };
}

/** The arguments are JSON of an object: the gateway has seen to that. Ids of other providers may have signs that the API refuses. */
const toToolUse = ({ id, name, arguments: text }: ToolCall): Block => {
  return { type: "tool_use", id: toOwnId(id), name, input: Object(tryParseJson(text)) };
};

const toOwnId = (id: string) => id.replace(/[^\w-]/g, "_");
