import { pacedItems } from "../../lib/in-slices.ts";

/** Longest line that is read, in bytes: a request stands in one record of the store, which takes none above 16 MB. */
const MAX_LINE_BYTES = 13 << 20;
const NEWLINE = 0x0a;
/** Most lines of a text that are read, empty ones included: twice the requests of a file. */
export const MAX_LINES = 100_000;

/**
 * The lines of a text in UTF-8, one after the other, and one more than `MAX_LINES` at most; undefined in the place of one that
 * is too long. Others have their turn between them.
 */
export const splitLines = (chunks: AsyncIterable<Uint8Array>) => pacedItems(cutLines(chunks));

async function* cutLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string | undefined> {
  let lines = 0;
  let parts: Uint8Array[] = [];
  let size = 0;
  const add = (part: Uint8Array) => {
    size += part.length;
    if (size > MAX_LINE_BYTES) parts = [];
    else parts.push(part);
  };
  const take = () => {
    const line = size > MAX_LINE_BYTES ? undefined : Buffer.concat(parts).toString("utf8");
    [parts, size] = [[], 0];
    return line;
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, end));
      from = end + 1;
      lines += 1;
      yield take();
      if (lines > MAX_LINES) return;
    }
    add(chunk.subarray(from));
  }
  if (size > 0) yield take();
}
