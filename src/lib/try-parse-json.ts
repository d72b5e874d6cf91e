/** The value of a JSON text; undefined, which no JSON is, for a text that is none. */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
