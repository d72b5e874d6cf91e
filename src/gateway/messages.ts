/**
 * The one form of a conversation inside the product. Every surface maps to and from it, and each provider's adapter maps it
 * to its wire. Texts alone stay strings: they are nearly all of the traffic.
 */
export type TextPart = { type: "text"; text: string };
/** A picture by a `data:` URL with base64, or by an https URL that the provider reads. */
export type ImagePart = { type: "image"; url: string; detail?: "auto" | "low" | "high" };
/** A PDF, by the same kinds of URL. */
export type FilePart = { type: "file"; url: string; name?: string };
export type ContentPart = TextPart | ImagePart | FilePart;
export type Content = string | readonly ContentPart[];

export type ToolCall = { id: string; name: string /** JSON text, as models write it. */; arguments: string };
/**
 * Reasoning as its provider made it: Anthropic's thinking block with its signature, OpenAI's encrypted reasoning item. It goes
 * back to the provider that made it byte for byte, and to no other.
 */
export type ReasoningPart = { type: "reasoning"; provider: string; item: Record<string, unknown> };
/** What an assistant said, in the order in which its provider gave it. */
export type AssistantPart = TextPart | ReasoningPart | ({ type: "tool-call" } & ToolCall);

export type Message =
  | { role: "system"; content: string }
  | { role: "user"; content: Content }
  | {
      role: "assistant";
      content: string;
      toolCalls?: ToolCall[];
      /** All of the turn in its order, where it has reasoning that must go back; `content` and `toolCalls` repeat its texts and calls. */
      parts?: readonly AssistantPart[];
    }
  | { role: "tool"; content: Content; toolCallId: string };

/** A content's text alone. */
export function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}
