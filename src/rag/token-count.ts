import { countTokens } from "gpt-tokenizer/encoding/o200k_base";

const plainText = { disallowedSpecial: new Set<string>() }; // text that spells a model's control token is still just text

/** Longest word whose count is remembered, in characters, and how many are; a full memory is emptied, which changes no count. */
const LONGEST_REMEMBERED = 40;
const MAX_REMEMBERED = 60_000;
const remembered = new Map<string, number>();

const [NEWLINE, SPACE, SLASH, LAST_SIGN, DELETE] = [10, 32, 47, 63, 127];
const signs = new Set(Array.from(".,;:!?)", (sign) => sign.charCodeAt(0)));

/**
 * Tokens of a text as OpenAI's o200k_base counts them. Its pattern cuts a text into words, signs and spaces before it looks
 * for tokens. Where it is sure to cut, so does this, and remembers the count of each word: prose takes a quarter of the time.
 * https://github.com/openai/tiktoken/blob/main/tiktoken_ext/openai_public.py
 */
export function tokensOf(text: string): number {
  let tokens = 0;
  let from = 0;
  let before = text.charCodeAt(0);
  for (let at = 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const mayCut = code <= LAST_SIGN || before === NEWLINE; // most characters are letters
    if (mayCut && isCut(before, code, text.charCodeAt(at + 1))) {
      tokens += tokensOfWord(text.slice(from, at));
      from = at;
    }
    before = code;
  }
  return tokens + tokensOfWord(text.slice(from));
}

/** Whether the pattern is sure to cut before `code`: a space that stands alone, a sign behind a letter, the begin of a line. */
function isCut(before: number, code: number, after: number): boolean {
  if (code === SPACE) return !isSpace(before) && !isSpace(after);
  if (before === NEWLINE) return code !== SLASH && !isSpace(code);
  return signs.has(code) && before >= 97 && before <= 122; // a to z
}

/** Of a code unit; NaN, behind the end of a text, counts as one too. */
function isSpace(code: number): boolean {
  if (code > SPACE && code < DELETE) return false;
  return Number.isNaN(code) || /\s/.test(String.fromCharCode(code));
}

function tokensOfWord(word: string): number {
  if (word.length > LONGEST_REMEMBERED) return countTokens(word, plainText);
  const known = remembered.get(word);
  if (known !== undefined) return known;
  const count = countTokens(word, plainText);
  if (remembered.size >= MAX_REMEMBERED) remembered.clear();
  remembered.set(Buffer.from(word).toString(), count); // a slice would keep its whole text in memory
  return count;
}
