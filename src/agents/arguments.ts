import { tryParseJson } from "../try-parse-json.ts";

/** The arguments of a tool call, which a model wrote as JSON; undefined when they are no JSON object. */
export function parseArguments(text: string): Record<string, unknown> | undefined {
  const value = tryParseJson(text === "" ? "{}" : text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}
