const brokenCapitals = /(?<!\p{L})(\p{Lu}+)-\n(\p{Lu}+)(?!\p{L})/gu;

/**
 * Makes a function that joins the words that are hyphenated at the end of a line. Of words in capitals it leaves those that a
 * hyphen joins always, as `TCP-IP`: a part of them stands alone in `lines`, too, or cannot be spoken.
 */
export function makeJoiner(lines: Iterable<string>): (text: string) => string {
  let known: Set<string> | undefined; // read when the first such word is met
  const isSyllable = (part: string) => part.length > 1 && /[AEIOUYÄÖÜÀ-ÝΑΕΗΙΟΥΩАЕИОУЫЭЮЯ]/u.test(part);
  const joinCapitals = (whole: string, head: string, tail: string) => {
    known ??= wordsInCapitals(lines);
    const isOne = known.has(head + tail) || !(known.has(head) || known.has(tail));
    return isOne && isSyllable(head) && isSyllable(tail) ? `${head}${tail}` : whole;
  };
  return (text) =>
    text
      .replace(/\u00ad\n/g, "")
      .replace(/(\p{Ll})-\n(\p{Ll})/gu, "$1$2")
      .replace(brokenCapitals, joinCapitals);
}

function wordsInCapitals(lines: Iterable<string>): Set<string> {
  const words = new Set<string>();
  let isRest = false; // the line begins with the rest of a word
  for (const line of lines) {
    for (const match of line.matchAll(/(?<![\p{L}-])\p{Lu}{2,}(?![\p{L}-])/gu)) {
      if (!isRest || match.index > 0) words.add(match[0]);
    }
    isRest = line.endsWith("-");
  }
  return words;
}
