/** Letters of scripts in which no spaces part words, and of Korean, which attaches endings to words. */
const unspacedRun =
  /(?:[\p{L}&&[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]]\p{M}*)+/gv;
const letterWithMarks = /\P{M}\p{M}*/gu;
const ideograph = /^\p{Script=Han}/u;
/** Vowel signs of Hebrew and Arabic, which most texts leave out, and the stroke that only lengthens a word. */
const optionalSigns = /[\u0591-\u05c7\u0640\u064b-\u065f\u0670]/g;

/**
 * Brings a text into the words by which text and query are compared, in every script: optional signs are left out; a run of
 * letters without spaces becomes its overlapping pairs, and its ideographs, which may be words, stand alone too. The result
 * has at most 4 characters for each one of the text; bringing it into words again changes nothing about which they are.
 */
export function partWords(text: string): string {
  return text.replace(optionalSigns, "").replace(unspacedRun, (run) => {
    const letters = run.match(letterWithMarks) ?? [];
    const words = letters.flatMap((letter, at) => {
      const next = letters[at + 1];
      const pair = next === undefined ? [] : [letter + next];
      return letters.length === 1 || ideograph.test(letter) ? [letter, ...pair] : pair;
    });
    return ` ${words.join(" ")} `;
  });
}
