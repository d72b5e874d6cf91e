import { tryParseKeepingDigits } from "../lib/exact-json.ts";
import { tryParseJson } from "../lib/try-parse-json.ts";

/**
 * The arguments of a tool call, which a model wrote as JSON; undefined when they are no JSON object. With `keepsDigits` whole
 * numbers that a double would round are texts.
 */
export function parseArguments(text: string, keepsDigits = false): Record<string, unknown> | undefined {
  const value = (keepsDigits ? tryParseKeepingDigits : tryParseJson)(text === "" ? "{}" : text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}
