import { firstLineOf, type ParsedDocument, tidy } from "./section.ts";

const MAX_CONTROL_SHARE = 0.02; // more control characters than that, and the bytes are not text

// biome-ignore-start lint/suspicious/noControlCharactersInRegex: these patterns are to match them
const ANSI_CODES =
  /(?:\x1b\[|\x9b)[0-?]{0,40}[ -/]{0,4}[@-~]|\x1b[\]PX^_][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)|\x1b[ -/]{0,4}[0-~]/g;
const OVERSTRUCK = /[^\n]\x08/g;
const NULS = /\0+/g;
const ANY_CODE = /[\0\x08\x1b\x9b]/;
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: these patterns are to match them

/** Takes what is meant for a terminal out of a text: colours, letters that are struck twice. NULs end a line. */
export function withoutCodes(text: string): string {
  if (!ANY_CODE.test(text)) return text;
  return text.replace(ANSI_CODES, "").replace(OVERSTRUCK, "").replace(NULS, "\n");
}

/** Whether the decoded start of a file shows that its bytes are not text. */
export function isBinary(head: string): boolean {
  const text = head.replace(ANSI_CODES, "").replace(OVERSTRUCK, "").replace(NULS, "\0"); // a gap of a log is one
  let controls = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 9 || (code > 13 && code < 32)) controls += 1;
  }
  return controls > text.length * MAX_CONTROL_SHARE;
}

/** Reads plain text as one section; its title is its first line. */
export function parseText(text: string): ParsedDocument {
  const body = tidy(text);
  const title = firstLineOf(body);
  return { type: "text", sections: [{ text: body }], ...(title ? { title } : {}) };
}
