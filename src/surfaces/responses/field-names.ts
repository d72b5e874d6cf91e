import { AppError, renameField } from "../../lib/errors.ts";

/** Fields that this API names otherwise than the surface of chats. */
const ownNames: Record<string, string> = {
  reasoning_effort: "reasoning.effort",
  verbosity: "text.verbosity",
  response_format: "text.format",
  max_tokens: "max_output_tokens",
  systemPrompt: "instructions",
  messages: "input",
};

/** Gives a field of a chat, as `messages[0].content[1]` or `verbosity`, its name here; `places` has those of the messages' contents. */
export function toOwnName(field: string, places: readonly string[]): string {
  return field
    .replace(/^messages\[(\d+)\]\.(?:content|tool_calls)/, (whole, place: string) => places[Number(place)] ?? whole)
    .replace(/^\w+/, (name) => ownNames[name] ?? name)
    .replace(/^text\.format\.json_schema/, "text.format");
}

/** An error that names the field of this API. */
export function withOwnName(error: unknown, places: readonly string[]): unknown {
  return error instanceof AppError ? renameField(error, (field) => toOwnName(field, places)) : error;
}
