import { monthOf } from "./dates.ts";
import { foldWord } from "./fold-text.ts";
import { englishNumberWords, hanDigits, spokenDigitWords } from "./number-words.ts";
import type { Span } from "./spans.ts";

/**
 * Words of a text that may be parts of one value, with what parts them. `isOpen`: the text ends before it is known where they end.
 * `digits`: how many, a word in place of digits counted as two.
 */
type PossibleValue = Span & { isOpen: boolean; digits: number };

/** Letters of scripts that write words without blanks. Each stands for itself. */
const loneLetter = "[\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u2e80-\\ua4cf\\uac00-\\ud7ff\\uf900-\\ufaff]";
/** What parts words but never a value: quotes, and the punctuation of JSON and tables. */
const parting = '[",;{}|]';
const tag = "<\\/?[a-zA-Z][^<>]{0,40}>";
/** A word in plain letters, which is read faster. */
const plainWord = `[a-zA-Z.'-]+(?=\\s|${parting}|$)`;
const tokens = new RegExp(
  `${plainWord}|${tag}|\\s+|${loneLetter}|${parting}+|(?:(?!${tag}|${loneLetter}|${parting})\\S)+`,
  "gu",
);
const unfinishedTag = /<\/?(?:[a-zA-Z][^<>]{0,40})?$/;
const numeric = new RegExp(`[\\p{N}${hanDigits}]`, "u");
/** Signs of what is found without digits: an address, an escape, a key. */
const sign = /[@&%\\]|[([{](?:at|dot)[)\]}]|-----/i;
/** Base64 and keys begin at this length, in characters. */
const MIN_ENCODED = 12;
/** Words that stand within values and begin none: what is said for a dash, links of dates, marks of years, months and days. */
const links = new Set(
  "dash hyphen minus point period dot slash space blank strich bindestrich tiret guion trattino kotojel hifen traco streepje myslnik thousand and of the de del den di do da day er st nd rd th o oo i ii iii iv v vi vii viii ix x xi xii 年 月 日 号 년 월 일 ο о".split(
    " ",
  ),
);
/** Characters between two words of one value, at most. */
const MAX_GAP = 64;
/** The beginning of an IBAN, and a group of one, which may be of letters alone. */
const beginOfIban = /(?<![a-z])[a-z]{2}\d{2}$/i;
const groupOfIban = /^[a-z\d]{1,4}$/i;
/** The letter for zero. */
const zeros = /^[oO\u043e\u041e\u03bf\u039f]+$/;
/** Digits of a word such as "fourteen", at most. */
const DIGITS_OF_WORD = 2;
const beginOfKey = /-----\s?BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY/;
const maybeBeginOfKey = /-----(?:\s?(?:B(?:E(?:G(?:I(?:N[A-Z0-9 ]{0,40})?)?)?)?)?)?$/;
const endOfKey = /-----\s?END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?\s?-----/;

/** The first words of a text, from `from` on, that may be a value; undefined if none may. Of a text that has ended, all words are whole. */
export function firstPossible(text: string, from: number, hasEnded: boolean): PossibleValue | undefined {
  let found: PossibleValue | undefined;
  let isIban = false;
  const whole = hasEnded ? text.length : wholeUntil(text);
  tokens.lastIndex = from;
  for (let match = tokens.exec(text); match !== null; match = tokens.exec(text)) {
    const start = match.index;
    const end = start + match[0].length;
    if (found && start - found.end > MAX_GAP) return { ...found, isOpen: false };
    if (end > whole)
      return { start: found?.start ?? start, end: text.length, isOpen: true, digits: found?.digits ?? 0 };
    const kind = kindOf(match[0]);
    isIban ||= beginOfIban.test(match[0]);
    if (kind === "word") {
      const isOfNumber = zeros.test(match[0]) || (isIban && groupOfIban.test(match[0]));
      if (found && !isOfNumber) return { ...found, isOpen: false };
    } else if (typeof kind === "number" || (kind === "link" && found)) {
      const digits = (found?.digits ?? 0) + Number(kind === "link" ? 0 : kind);
      found = { start: found?.start ?? start, end, isOpen: true, digits };
      if (match[0].includes("-----")) return keyFrom(text, found, hasEnded);
    }
  }
  return found && { ...found, isOpen: !hasEnded };
}

/** Up to where the words of a text are whole, whatever comes after it. */
function wholeUntil(text: string): number {
  const last =
    /(?:\s|[",;{}|]|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff])\S*$/.exec(
      text.slice(-MAX_GAP * 64),
    );
  const words = last ? text.length - last[0].length + 1 : 0;
  const ofTag = unfinishedTag.exec(text.slice(-MAX_GAP));
  return ofTag ? Math.min(words, text.length - ofTag[0].length) : words;
}

/** A private key, which has many words. */
function keyFrom(text: string, found: PossibleValue, hasEnded: boolean): PossibleValue {
  const rest = text.slice(found.start);
  if (beginOfKey.test(rest)) {
    const end = endOfKey.exec(rest);
    if (!end) return { ...found, end: text.length, isOpen: !hasEnded };
    return { ...found, end: found.start + end.index + end[0].length, isOpen: false };
  }
  return { ...found, isOpen: !hasEnded && maybeBeginOfKey.test(rest), digits: 0 };
}

/** Of a word in a value the digits; else whether it parts values, may stand in one, or is only what stands between words. */
function kindOf(token: string): number | "word" | "link" | "gap" {
  if (token.length < MIN_ENCODED && plainLetters.test(token)) return kindOfWords([token.toLowerCase()]);
  if (/^\s/.test(token)) return "gap";
  const digits = token.match(/\p{Nd}/gu)?.length ?? 0;
  if (digits > 0) return digits;
  if (numeric.test(token)) return DIGITS_OF_WORD;
  const word = token.normalize("NFKC");
  if (sign.test(word) || (word.length >= MIN_ENCODED && /[A-Z\d]/.test(word))) return 0;
  if (token.startsWith("<")) return "gap";
  return kindOfWords(foldWord(token).match(/[\p{L}\p{M}]+/gu) ?? []);
}

const plainLetters = /^[a-zA-Z]+$/;

function kindOfWords(parts: readonly string[]): number | "word" | "link" | "gap" {
  if (parts.length === 0) return "gap";
  if (parts.some((part) => isOfNumber(part))) return DIGITS_OF_WORD * parts.length;
  if (parts.every((part) => links.has(part))) return "link";
  return "word";
}

const isOfNumber = (word: string) =>
  !links.has(word) && (englishNumberWords.has(word) || spokenDigitWords.has(word) || monthOf(word) !== undefined);
