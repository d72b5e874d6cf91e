/** Number words that stand together, and their digits. */
export type NumberWordRun = { start: number; end: number; digits: string };

const units = "zero one two three four five six seven eight nine".split(" ");
const teens = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(" ");
const tens = "twenty thirty forty fifty sixty seventy eighty ninety".split(" ");
const ordinals =
  "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth";

/** The numbers of words: `from` of the first, `step` more of each further one. */
const valuesOf = (words: readonly string[], from: number, step = 1) =>
  new Map(words.map((word, index) => [word, from + step * index]));
const unitValue = valuesOf(units, 0).set("oh", 0);
const teenValue = valuesOf(teens, 10);
const tenValue = valuesOf(tens, 20, 10);
const ordinalValue = valuesOf(ordinals.split(" "), 1).set("thirtieth", 30);
const repeats = valuesOf(["double", "triple"], 2);
const allWords = [unitValue, teenValue, tenValue, ordinalValue, repeats].flatMap((values) => [...values.keys()]);
const anyWord = allWords.toSorted((a, b) => b.length - a.length).join("|");
/** Folded words that numbers are written with in English. */
export const englishNumberWords: ReadonlySet<string> = new Set(allWords);
/** Words of one run are kept together by blanks, commas or dashes, and by the "thousand" of a year. */
const runPattern = new RegExp(
  `(?<![a-z])(?:${anyWord})(?:(?:[ ,-]{1,3}|\\n)(?:thousand(?: and)? )?(?:${anyWord}))*(?![a-z])`,
  "g",
);
const wordPattern = /[a-z]+/g;

/**
 * Finds digits in a folded text that are written as English words: one by one ("one two three"), in pairs ("forty-five"), doubled
 * ("double oh"), as years ("nineteen eighty-five", "two thousand and five"), ordinals ("fifteenth"). Single cardinals stay words.
 */
export function numberWordRuns(text: string): NumberWordRun[] {
  const runs: NumberWordRun[] = [];
  for (const match of text.matchAll(runPattern)) {
    const [words] = match;
    const digits = sayDigits(words);
    if (digits !== undefined) runs.push({ start: match.index, end: match.index + words.length, digits });
  }
  return runs;
}

type Said = { digits: string; words: number; isOrdinal?: true };

/** The digits of a run, or undefined for a lone cardinal: "one" is more often a pronoun than a digit. */
function sayDigits(run: string): string | undefined {
  const words = [...run.matchAll(wordPattern)];
  const texts = words.map(([word]) => word);
  if (texts.length === 1 && !ordinalValue.has(texts[0] ?? "")) return undefined;
  let said = "";
  let endOfLast = 0;
  for (let index = 0; index < texts.length; ) {
    const number = readNumber(texts, index);
    const gap = run.slice(endOfLast, words[index]?.index);
    if (number.isOrdinal) said += ` ${number.digits} `;
    // a dash or a comma between two numbers parts groups, and stays one
    else said += (said !== "" && /[,-]/.test(gap) ? "-" : "") + number.digits;
    index += number.words;
    const last = words[index - 1];
    endOfLast = (last?.index ?? 0) + (last?.[0].length ?? 0);
  }
  return said.trim();
}

/** Reads the number that begins at a word: "forty five", "double oh", "two thousand and five", "twenty first", "seven". */
function readNumber(words: readonly string[], at: number): Said {
  const number = readSmall(words, at);
  if (words[at + 1] !== "thousand") return number;
  const skipped = words[at + 2] === "and" ? 3 : 2;
  const rest = words[at + skipped] === undefined ? undefined : readSmall(words, at + skipped);
  if (rest === undefined || rest.isOrdinal || rest.digits.length > 2) {
    return { digits: `${number.digits}000`, words: skipped };
  }
  return { digits: `${number.digits}0${rest.digits.padStart(2, "0")}`, words: skipped + rest.words };
}

/** As `readNumber`, up to a hundred, or digits that are doubled. */
function readSmall(words: readonly string[], at: number): Said {
  const word = words[at] ?? "";
  const next = words[at + 1] ?? "";
  const ordinal = ordinalValue.get(word);
  if (ordinal !== undefined) return { digits: `${ordinal}th`, words: 1, isOrdinal: true };
  const times = repeats.get(word);
  if (times !== undefined) return { digits: String(unitValue.get(next) ?? "").repeat(times), words: 2 };
  const ten = tenValue.get(word);
  if (ten === undefined) return { digits: String(unitValue.get(word) ?? teenValue.get(word) ?? ""), words: 1 };
  const unit = unitValue.get(next) ?? 0;
  const day = ordinalValue.get(next) ?? 10;
  if (day < 10) return { digits: `${ten + day}th`, words: 2, isOrdinal: true };
  return unit > 0 ? { digits: String(ten + unit), words: 2 } : { digits: String(ten), words: 1 };
}

/** The digits of Chinese and Japanese, of everyday and of cheques; the place in each row is the value. */
const rows = ["〇一二三四五六七八九", "零壹贰叁肆伍陆柒捌玖", "○壱貳參肆伍陸漆捌玖"];
const digitOf = new Map(rows.flatMap((row) => [...row].map((character, value) => [character, String(value)] as const)));
const TEN = "十";
/** All of them, and the character for ten. */
export const hanDigits = [...digitOf.keys(), TEN].join("");
/** Two digits at least, or one that a day, month or year has. */
const pattern = new RegExp(`[${hanDigits}](?:[ -]?[${hanDigits}])+|[${hanDigits}](?=[年月日号])`, "g");
const hasAny = new RegExp(`[${hanDigits}]`);

/** Finds numbers in Chinese characters: digit by digit ("二一九"), and up to 99 with the character for ten ("十二"). */
export function hanNumberRuns(text: string): NumberWordRun[] {
  if (!hasAny.test(text)) return [];
  const runs: NumberWordRun[] = [];
  for (const match of text.matchAll(pattern)) {
    const digits = sayNumber(match[0]);
    if (digits !== undefined) runs.push({ start: match.index, end: match.index + match[0].length, digits });
  }
  return runs;
}

function sayNumber(number: string): string | undefined {
  if (!number.includes(TEN)) return [...number].map((character) => digitOf.get(character) ?? character).join("");
  const [tens = "", units = "", more] = number.split(TEN);
  if (more !== undefined || tens.length > 1 || units.length > 1) return undefined;
  return `${digitOf.get(tens) ?? 1}${digitOf.get(units) ?? 0}`;
}

/**
 * The digits from zero on as they are said, folded, with their variants: in German, French, Spanish, Italian, Hungarian,
 * Portuguese, Dutch and Polish. Languages that share a word agree on its value.
 */
const languages: readonly string[] = [
  "null ein|eins|eine zwei|zwo drei vier funf|fuenf sechs sieben acht neun",
  "zero un|une deux trois quatre cinq six sept huit neuf",
  "cero un|uno|una dos tres cuatro cinco seis siete ocho nueve",
  "zero un|uno|una due tre quattro cinque sei sette otto nove",
  "nulla egy ket|ketto harom negy ot hat het nyolc kilenc",
  "zero um|uma dois|duas tres quatro cinco seis|meia sete oito nove",
  "nul een twee drie vier vijf zes zeven acht negen",
  "zero jeden|jedna dwa|dwie trzy cztery piec szesc siedem osiem dziewiec",
];
/** What is said for a dash, in the same languages. */
const dashes = "strich|bindestrich|tiret|guion|trattino|kotojel|hifen|traco|streepje|myslnik|minus|dash";
const said = new Map(
  languages.flatMap((digits) =>
    digits.split(" ").flatMap((words, digit) => words.split("|").map((word) => [word, String(digit)] as const)),
  ),
);
/** The folded words of all languages. */
export const spokenDigitWords: ReadonlySet<string> = new Set(said.keys());
const words = [...said.keys()].join("|");
/** Fewer digits are words of a sentence: "un", "due", "sei". */
const spokenPattern = new RegExp(
  `(?<![a-z])(?:${words})(?:(?:[ ,-]{1,3}|\\n)(?:(?:${dashes})[ ,-]{1,3})?(?:${words})(?![a-z])){3,}`,
  "g",
);

/** Finds numbers of four digits and more that are said digit by digit in another language than English. */
export function spokenDigitRuns(text: string): NumberWordRun[] {
  return Array.from(text.matchAll(spokenPattern), ({ index, 0: run }) => {
    const parts = run.matchAll(/[a-z]+|[,-]/g);
    const digits = Array.from(parts, ([part]) => said.get(part) ?? "-").join("");
    return { start: index, end: index + run.length, digits };
  });
}
