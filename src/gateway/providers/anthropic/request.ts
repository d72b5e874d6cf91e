import { defined } from "../../../defined.ts";
import { invalidRequest } from "../../../errors.ts";
import { tryParseJson } from "../../../try-parse-json.ts";
import { type Message, type ToolCall, textOf } from "../../messages.ts";
import type { CompletionRequest, ToolChoice, ToolDefinition } from "../provider.ts";

/** The API demands a limit, and thinking counts towards it. Every current model can write four times as much. */
export const DEFAULT_MAX_TOKENS = 16_384;

type Block =
  | { type: "text"; text: string }
  | { type: "tool_use"; id: string; name: string; input: object }
  | { type: "tool_result"; tool_use_id: string; content: string };
type Turn = { role: "user" | "assistant"; content: Block[] };

/**
 * The parameters of `POST /v1/messages`: system messages become `system`, tool results become blocks of the user's turn,
 * and messages of one side that follow each other become one turn, so that the results of parallel calls stay together.
 * @throws AppError `invalid_request` for a tool call in the conversation whose arguments are not a JSON object.
 */
export function toMessagesParams(request: CompletionRequest): Record<string, unknown> {
  const system = request.messages.flatMap((message) => (message.role === "system" ? [message.content] : []));
  const turns = toTurns(request.messages);
  // A conversation needs a turn: where there are only instructions, the last one becomes the question.
  if (turns.length === 0) turns.push({ role: "user", content: [{ type: "text", text: system.pop() ?? "" }] });
  return defined({
    model: request.model,
    max_tokens: request.maxTokens ?? DEFAULT_MAX_TOKENS,
    system: system.length === 0 ? undefined : system.join("\n\n"),
    messages: turns.map(toWireTurn),
    temperature: request.temperature,
    top_p: request.topP,
    stop_sequences: request.stop,
    tools: request.tools?.map(toWireTool),
    tool_choice: request.toolChoice && toWireToolChoice(request.toolChoice),
  });
}

function toTurns(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = [];
  for (const [place, message] of messages.entries()) {
    if (message.role === "system") continue;
    const role = message.role === "assistant" ? "assistant" : "user";
    const blocks = toBlocks(message, place);
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else if (blocks.length > 0) turns.push({ role, content: blocks });
  }
  return turns;
}

function toBlocks(message: Message, place: number): Block[] {
  if (message.role === "tool")
    return [{ type: "tool_result", tool_use_id: message.toolCallId, content: textOf(message.content) }];
  if (message.role !== "assistant") return [{ type: "text", text: textOf(message.content) }];
  // Empty text is refused by the API, and an assistant that only called tools said nothing.
  const text: Block[] = message.content === "" ? [] : [{ type: "text", text: textOf(message.content) }];
  return [...text, ...(message.toolCalls ?? []).map((call) => toToolUse(call, place))];
}

function toToolUse({ id, name, arguments: text }: ToolCall, place: number): Block {
  const input = text.trim() === "" ? {} : tryParseJson(text);
  if (typeof input === "object" && input !== null && !Array.isArray(input))
    return { type: "tool_use", id, name, input };
  throw invalidRequest(
    `messages[${place}].tool_calls`,
    `The arguments of the tool call ${name} are not a JSON object.`,
  );
}

/** A turn of one text is sent as that text: shorter, and what the documentation shows first. */
function toWireTurn({ role, content }: Turn): unknown {
  const [only] = content;
  return { role, content: content.length === 1 && only?.type === "text" ? only.text : content };
}

function toWireTool({ name, description, parameters }: ToolDefinition): unknown {
  return defined({ name, description, input_schema: { type: "object", ...parameters } });
}

function toWireToolChoice(choice: ToolChoice): unknown {
  if (typeof choice === "object") return { type: "tool", name: choice.name };
  return { type: choice === "required" ? "any" : choice };
}
