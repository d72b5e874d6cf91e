import type { Replacement } from "./excerpt.ts";

/** Base64 in either alphabet (RFC 4648, 4 and 5), also in the long lines of a mail. Shorter runs hold no identifier. */
const runs = /(?<![\w+/-])[\w+/-]{12,}(?:(?<=[\w+/-]{60})\r?\n[\w+/-]+)*={0,2}/g;
/** What may be base64 within a run that is none as a whole, such as a path or a name with dashes. */
const parts = /[a-z\d]{12,}/gi;
/** What all but words in small letters have in their first characters. */
const sign = /[A-Z\d]/;
/** The beginning of a run, in characters, which shows that pictures, keys and hashes are no text. */
const HEAD = 48;
/** Characters of base64 that are decoded of one text at most. */
const MAX_ENCODED = 256 << 10;
/** Of the characters of a text, the most that cannot be printed. */
const MAX_UNPRINTABLE = 0.05;
const unprintable = /[^\P{C}\t\r\n]|\ufffd/gu;

/** The runs of base64 in a text that hold text themselves, in order, each with what it stands for. They are decoded once. */
export function findEncoded(text: string): Replacement[] {
  const found: Replacement[] = [];
  let left = MAX_ENCODED;
  const add = (start: number, run: string): boolean => {
    const taken = run.slice(0, left);
    const head = taken.slice(0, HEAD);
    const said = sign.test(head) && isText(decode(head)) ? decode(taken) : "";
    if (said === "" || !isText(said)) return false;
    left -= taken.length;
    found.push({ start, end: start + taken.length, said });
    return true;
  };
  for (const { index, 0: run } of text.matchAll(runs)) {
    if (add(index, run)) continue;
    for (const part of run.slice(0, left).matchAll(parts)) add(index + part.index, part[0]);
  }
  return found;
}

const decode = (run: string) => Buffer.from(run, "base64").toString("utf8");

/** Whether nearly all of it can be printed. A cut may have parted its last character. */
function isText(decoded: string): boolean {
  const odd = decoded.replace(/\ufffd$/, "").match(unprintable)?.length ?? 0;
  return odd <= decoded.length * MAX_UNPRINTABLE;
}
