import { tryParseJson } from "../../lib/try-parse-json.ts";

/** This much of a text is read, in characters: what an answer reports of itself stands at its beginning. */
const MAX_CHARACTERS = 1 << 20;

/** The value of a JSON text, or what had come of one that broke off, half a string too. undefined when it is none. */
export function parsePartialJson(text: string): unknown {
  const whole = tryParseJson(text);
  if (whole !== undefined) return whole;
  const begun = text.slice(0, MAX_CHARACTERS);
  const { inString, closers, lastWhole } = scan(begun);
  const said = inString ? tryParseJson(`${begun.replace(/\\(?:u[\da-f]{0,3})?$/i, "")}"${closers}`) : undefined;
  return said ?? (lastWhole > 0 ? tryParseJson(begun.slice(0, lastWhole) + closers) : undefined);
}

/**
 * Where a text that breaks off stands: in a string, in which brackets, and where its last value ended. Each bracket ends one,
 * so that the same brackets are open there as at the end.
 */
function scan(text: string) {
  let inString = false;
  let lastWhole = 0;
  const open: string[] = [];
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (inString) {
      if (character === "\\") at++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === "{" || character === "[") {
      open.push(character === "{" ? "}" : "]");
      lastWhole = at + 1;
    } else if (character === "}" || character === "]") {
      open.pop();
      lastWhole = at + 1;
    } else if (character === ",") lastWhole = at;
  }
  return { inString, closers: open.reverse().join(""), lastWhole };
}
