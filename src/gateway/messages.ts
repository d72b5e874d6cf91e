/**
 * The one form of a conversation inside the product. Every surface maps to and from it, and each provider's adapter maps it
 * to its wire. Texts alone stay strings: they are nearly all of the traffic.
 */
type TextPart = { type: "text"; text: string };
/** A picture by a `data:` URL with base64, or by an https URL that the provider reads. */
export type ImagePart = { type: "image"; url: string; detail?: "auto" | "low" | "high" | "original" };
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
/** The parts of an assistant's turn, in the order of the provider. */
export type AssistantPart = TextPart | ReasoningPart | ({ type: "tool-call" } & ToolCall);
/** The same as a provider returns it. The gateway adds which provider the reasoning came from. */
export type ProvidedPart = Exclude<AssistantPart, ReasoningPart> | Omit<ReasoningPart, "provider">;

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

/** The text of a content, without its other parts. */
export function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** A content made of these parts. If all are texts, they become one string. */
export function toContent(parts: readonly ContentPart[]): Content {
  return parts.every(({ type }) => type === "text") ? textOf(parts) : parts;
}

/** A turn of the assistant, by its parts. */
export function toAssistantMessage(parts: readonly AssistantPart[]): Message {
  const toolCalls = parts.flatMap((part): ToolCall[] => {
    if (part.type !== "tool-call") return [];
    const { type: _type, ...call } = part;
    return [call];
  });
  return {
    role: "assistant",
    content: parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n"),
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
    ...(parts.some(({ type }) => type === "reasoning") ? { parts } : {}),
  };
}

/** A turn as its provider gave it: its text and its calls, with the reasoning in its places. */
export function toTurn<R>(
  content: string,
  calls: readonly ToolCall[],
  reasoning: readonly { index: number; part: R }[],
): (Exclude<AssistantPart, ReasoningPart> | R)[] {
  const parts: (Exclude<AssistantPart, ReasoningPart> | R)[] = content === "" ? [] : [{ type: "text", text: content }];
  for (const call of calls) parts.push({ type: "tool-call", ...call });
  for (const { index, part } of reasoning.toSorted((a, b) => a.index - b.index)) parts.splice(index, 0, part);
  return parts;
}

/** Parts of a turn; reasoning parts carry the provider they came from. */
export function markReasoning(parts: readonly ProvidedPart[], provider: string): AssistantPart[] {
  return parts.map((part) => (part.type === "reasoning" ? { ...part, provider } : part));
}

/** Messages as they go to a provider: without the reasoning that other providers made. */
export function forProvider(messages: Message[], provider: string): Message[] {
  for (const message of messages) {
    if (message.role === "assistant" && message.parts !== undefined)
      return messages.map((one) => withOwnReasoning(one, provider));
  }
  return messages;
}

/** Messages without any reasoning that goes back; undefined where they have none. */
export function withoutReasoning(messages: Message[]): Message[] | undefined {
  const plain = forProvider(messages, "");
  return plain === messages ? undefined : plain;
}

function withOwnReasoning(message: Message, provider: string): Message {
  if (message.role !== "assistant" || message.parts === undefined) return message;
  const { parts, ...plain } = message;
  const kept = parts.filter((part) => part.type !== "reasoning" || part.provider === provider);
  if (kept.length === parts.length) return message;
  return kept.some(({ type }) => type === "reasoning") ? { ...plain, parts: kept } : plain;
}
