import type { NumberWordRun } from "./number-words.ts";

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
const pattern = new RegExp(
  `(?<![a-z])(?:${words})(?:(?:[ ,-]{1,3}|\\n)(?:(?:${dashes})[ ,-]{1,3})?(?:${words})(?![a-z])){3,}`,
  "g",
);

/** Finds numbers of four digits and more that are said digit by digit in another language than English. */
export function spokenDigitRuns(text: string): NumberWordRun[] {
  return Array.from(text.matchAll(pattern), ({ index, 0: run }) => {
    const parts = run.matchAll(/[a-z]+|[,-]/g);
    const digits = Array.from(parts, ([part]) => said.get(part) ?? "-").join("");
    return { start: index, end: index + run.length, digits };
  });
}
