import type { DocumentWarning } from "../schemas.ts";
import { charsetNamed, guessCharset } from "./guess-charset.ts";

/** The text of a source. `warning`: its charset is not certain, or some of its bytes fit none. */
type Decoded = { text: string; warning?: DocumentWarning };

/** What a charset other than UTF-8 has that is valid UTF-8 too, by chance: fewer letters outside ASCII than these. */
const UTF8_LETTERS = /^(?:[^\u0080-\uffff]*[\u0080-\uffff]){4}/;
/** The most of a text's letters outside ASCII that may be damaged: with more, it is a text of another charset. */
const MAX_DAMAGED = 0.05;
const MAX_DAMAGED_UTF8 = 0.2; // hardly any other text is so near to it
// biome-ignore lint/suspicious/noControlCharactersInRegex: this is how a text in ISO-2022-JP changes its characters
const SHIFT = /\x1b\$[@B]/;

/**
 * Decodes a text by its byte order mark, by the charsets that are `declared` for it, the surest first, as UTF-8 if it is valid,
 * and else by a guess. Charsets are those of browsers. A declaration that the bytes contradict, an unsure guess and damaged
 * characters are a warning.
 */
export async function decodeText(bytes: Uint8Array, declared: readonly string[] = []): Promise<Decoded> {
  const marked = markedCharset(bytes);
  if (marked !== undefined) return { text: new TextDecoder(marked).decode(bytes) };
  const utf8 = tryDecode(bytes, "utf-8");
  const isUtf8 = utf8 !== undefined && !utf8.includes("\0") && !SHIFT.test(utf8);
  if (isUtf8 && utf8.length === bytes.length) return { text: utf8 }; // ASCII
  const charsets = declared.map(charsetNamed).filter((charset) => charset !== undefined);
  for (const charset of charsets) {
    const text = charset === "utf-8" ? utf8 : tryDecode(bytes, charset);
    const isRefuted = charset !== "utf-8" && isUtf8 && UTF8_LETTERS.test(utf8);
    if (text !== undefined && !isRefuted) return { text };
  }
  const refuted = refutationOf(declared[0], charsets[0]);
  if (isUtf8) return { text: utf8, ...(refuted ? uncertain(`${refuted} It was read as utf-8.`) : {}) };
  for (const charset of utf8 === undefined ? [...charsets, "utf-8"] : []) {
    const damaged = decodeDamaged(bytes, charset);
    if (damaged) return damaged;
  }
  const { charset, isSure } = await guessCharset(bytes);
  if (utf8 !== undefined && !charset.startsWith("utf-16") && !SHIFT.test(utf8)) return { text: utf8 }; // with NULs in it
  const text = new TextDecoder(charset).decode(bytes);
  if (isSure && refuted === undefined) return { text };
  return { text, ...uncertain(`${refuted ?? "It declares no charset."} It was read as ${charset}, which is a guess.`) };
}

/** What to say of a declared charset that was not followed. */
function refutationOf(declared: string | undefined, charset: string | undefined): string | undefined {
  if (declared === undefined) return undefined;
  const fault = charset === undefined ? "is not known" : "does not fit its bytes";
  return `The charset ${declared.slice(0, 40)}, which it declares, ${fault}.`;
}

/** The charset that a page, or XML, declares in its first kilobyte. */
export function declaredCharset(bytes: Uint8Array): string | undefined {
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 1_024));
  const found =
    /^\s*<\?xml[^>]*\sencoding\s*=\s*["']([\w.:-]+)/i.exec(head) ??
    (/^\s*</.test(head) ? /<meta\s[^>]*charset\s*=\s*["']?([\w.:-]+)/i.exec(head) : null);
  const label = found?.[1];
  return label !== undefined && /^utf-?16/i.test(label) ? "utf-8" : label; // what is read as ASCII here is not UTF-16
}

function markedCharset(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8";
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return undefined;
}

/** The text of bytes that are valid in a charset, but for a last character that is cut. */
export function tryDecode(bytes: Uint8Array, label: string): string | undefined {
  try {
    return new TextDecoder(label, { fatal: true }).decode(bytes, { stream: true });
  } catch (error) {
    if (error instanceof TypeError) return undefined; // not valid in it
    throw error;
  }
}

/** A text of a charset with a few damaged characters; undefined if it is none. */
function decodeDamaged(bytes: Uint8Array, charset: string): Decoded | undefined {
  const text = new TextDecoder(charset).decode(bytes);
  let damaged = 0;
  let letters = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0xfffd) damaged += 1;
    else if (code > 0x7f) letters += 1;
  }
  if (damaged > (charset === "utf-8" ? MAX_DAMAGED_UTF8 : MAX_DAMAGED) * letters) return undefined;
  const lost = damaged === 1 ? "one of its characters is lost" : `${damaged} of its characters are lost`;
  return { text, ...uncertain(`It was read as ${charset}, though some bytes do not fit: ${lost}.`) };
}

const uncertain = (message: string): Pick<Decoded, "warning"> => ({ warning: { code: "charset_uncertain", message } });
