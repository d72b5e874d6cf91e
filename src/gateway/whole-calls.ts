import { tryParseJson } from "../lib/try-parse-json.ts";
import type { AssistantPart, Content, Message, ToolCall } from "./messages.ts";
import { toArguments } from "./providers/tool-calls.ts";

/** Longest raw text of a call's arguments that its result repeats, in characters. */
const MAX_RAW = 20_000;

/**
 * Messages whose tool calls all have a JSON object as arguments, as most providers demand. A call that was cut, or was written
 * wrong, gets an empty object, and its result says what was there.
 */
export function withWholeCalls(messages: Message[]): Message[] {
  if (!messages.some((message) => message.role === "assistant" && message.toolCalls?.some(isOdd))) return messages;
  let broken = new Map<string, string>();
  return messages.map((message): Message => {
    if (message.role === "tool") {
      const raw = broken.get(message.toolCallId);
      return raw === undefined ? message : { ...message, content: withRaw(message.content, raw) };
    }
    if (message.role !== "assistant" || message.toolCalls === undefined) return message;
    const { toolCalls, parts } = message;
    broken = new Map(
      toolCalls.flatMap((call) => (toObject(call.arguments) === undefined ? [[call.id, call.arguments]] : [])),
    );
    const whole = { ...message, toolCalls: toolCalls.map(toWhole) };
    return parts === undefined ? whole : { ...whole, parts: parts.map(toWholePart) };
  });
}

/** The arguments as they go to a provider; undefined for what is no object. */
function toObject(given: string): string | undefined {
  const text = toArguments(given);
  const value = tryParseJson(text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? text : undefined;
}

const isOdd = (call: ToolCall) => toObject(call.arguments) !== call.arguments;
const toWhole = <C extends ToolCall>(call: C): C => ({ ...call, arguments: toObject(call.arguments) ?? "{}" });
const toWholePart = (part: AssistantPart) => (part.type === "tool-call" ? toWhole(part) : part);

function withRaw(content: Content, raw: string): Content {
  const note = `The arguments of this call were no JSON object: ${raw.slice(0, MAX_RAW).toWellFormed()}`;
  return typeof content === "string" ? `${note}\n\n${content}` : [{ type: "text", text: note }, ...content];
}
