import { toWellFormed } from "../lib/bounded-json.ts";
import { parseKeepingDigits } from "../lib/exact-json.ts";

/**
 * The arguments of a tool call, which a model wrote as JSON, as a tool is given them; undefined when they are no JSON object, or
 * nested too deeply. With `keepsDigits` whole numbers that a double would round are texts.
 */
export function parseArguments(text: string, keepsDigits = false): Record<string, unknown> | undefined {
  try {
    const given = text === "" ? "{}" : text;
    const value = toWellFormed(keepsDigits ? parseKeepingDigits(given) : JSON.parse(given));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined; // a model wrote it: no tool is called with it, and the model reads why
  }
}
