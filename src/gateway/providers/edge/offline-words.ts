/** Marks that NFKD splits off Latin, Greek and Cyrillic letters. */
const accents = /[\u0300-\u036f]/g;

const SEPARATOR = 1;
const LETTER = 2;
/** A letter of a script that puts no spaces between words. */
const UNSPACED = 3;

/** Kinds of UTF-16 code units, filled in as they are met; 0: not met yet. */
const kinds = new Uint8Array(65_536);

/**
 * Calls `use` with each word of a text in order: lower case, without accents. Scripts without spaces give overlapping pairs
 * of characters. Characters beyond the basic plane (emoji, rare ideographs) part words.
 */
export function forEachWord(text: string, use: (word: string) => void): void {
  const plain = fold(text);
  let start = -1;
  let before = SEPARATOR;
  for (let at = 0; at <= plain.length; at += 1) {
    const kind = at < plain.length ? kindOf(plain.charCodeAt(at)) : SEPARATOR;
    if (start >= 0 && kind !== LETTER) {
      use(plain.slice(start, at));
      start = -1;
    } else if (start < 0 && kind === LETTER) {
      start = at;
    }
    if (kind === UNSPACED) {
      const isPair = kindOf(plain.charCodeAt(at + 1)) === UNSPACED;
      if (isPair || before !== UNSPACED) use(plain.slice(at, at + (isPair ? 2 : 1)));
    }
    before = kind;
  }
}

function fold(text: string): string {
  const lower = text.toLowerCase();
  return isAscii(lower) ? lower : lower.normalize("NFKD").replace(accents, "").normalize("NFC");
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 127) return false;
  return true;
}

function kindOf(code: number): number {
  return kinds[code] || learnKind(code);
}

function learnKind(code: number): number {
  const character = String.fromCharCode(code);
  const isUnspaced =
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
  const kind = isUnspaced.test(character) ? UNSPACED : /[\p{L}\p{N}\p{M}]/u.test(character) ? LETTER : SEPARATOR;
  kinds[code] = kind;
  return kind;
}
