import { firstLineOf, type ParsedDocument, tidy } from "./section.ts";

const MAX_CONTROL_SHARE = 0.02; // more control characters than that, and the bytes are not text

/**
 * Decodes text by its byte order mark, else by the declared `charset`, else as UTF-8 if it is valid, else as Windows-1252,
 * which accepts every byte.
 */
export function decodeText(bytes: Uint8Array, charset?: string): string {
  const marked = markedCharset(bytes);
  if (marked) return new TextDecoder(marked).decode(bytes);
  return tryDecode(bytes, charset) ?? tryDecode(bytes) ?? new TextDecoder("windows-1252").decode(bytes);
}

function markedCharset(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8";
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return undefined;
}

function tryDecode(bytes: Uint8Array, label = "utf-8"): string | undefined {
  try {
    return new TextDecoder(label, { fatal: true }).decode(bytes, { stream: true }); // the last character may be cut
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return undefined; // not valid in it, or no such charset
    throw error;
  }
}

/** Whether the decoded start of a file shows that its bytes are not text. */
export function isBinary(head: string): boolean {
  let controls = 0;
  for (let index = 0; index < head.length; index += 1) {
    const code = head.charCodeAt(index);
    if (code === 0) return true;
    if (code < 32 && code !== 9 && code !== 10 && code !== 12 && code !== 13) controls += 1;
  }
  return controls > head.length * MAX_CONTROL_SHARE;
}

/** Reads plain text as one section; its title is its first line. */
export function parseText(text: string): ParsedDocument {
  const body = tidy(text);
  const title = firstLineOf(body);
  return { type: "text", sections: [{ text: body }], ...(title ? { title } : {}) };
}

/** The charset that a page declares in its first kilobyte. */
export function declaredCharset(bytes: Uint8Array): string | undefined {
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 1_024));
  return /<meta[^>]+charset\s*=\s*["']?([\w-]+)/i.exec(head)?.[1];
}
