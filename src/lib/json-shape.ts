const [quote, backslash, colon, bracket, brace] = [0x22, 0x5c, 0x3a, 0x5b, 0x7b];
const CLOSES = 2; // the closing bracket and brace are that much above the opening ones
/** A text that is parsed whatever its shape, in characters: that takes some milliseconds at most. */
const ALWAYS_PARSED = 32 << 10;
/** Objects, lists and fields in one JSON text, and levels of them, at most. */
const MAX_PARTS = 50_000;
const MAX_LEVELS = 200;

/**
 * Whether parsing a JSON text of an outside would hold the event loop for long: 4 MiB of empty objects or of fields take a
 * second, of lists in lists two, while one long text takes 12 ms, and numbers 50 to 170.
 */
export function isCostlyJson(text: string): boolean {
  if (text.length <= ALWAYS_PARSED) return false;
  let [parts, level] = [0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === colon) parts += 1;
    else if (code === bracket || code === brace) [parts, level] = [parts + 1, level + 1];
    else if (code === bracket + CLOSES || code === brace + CLOSES) level -= 1;
    if (parts > MAX_PARTS || level > MAX_LEVELS) return true;
  }
  return false;
}

/** The place of the quote that ends a string: one after an odd number of backslashes does not. */
function endOfString(text: string, begin: number): number {
  for (let at = text.indexOf('"', begin + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text.charCodeAt(before) === backslash) before -= 1;
    if ((at - before) % 2 === 1) return at;
  }
  return text.length;
}
