import type { NumberWordRun } from "./number-words.ts";

/** The digits of Chinese and Japanese, of everyday and of cheques; the place in each row is the value. */
const rows = ["〇一二三四五六七八九", "零壹贰叁肆伍陆柒捌玖", "○壱貳參肆伍陸漆捌玖"];
const digitOf = new Map(rows.flatMap((row) => [...row].map((character, value) => [character, String(value)] as const)));
const TEN = "十";
const digit = [...digitOf.keys(), TEN].join("");
/** Two digits at least, or one that a day, month or year has. */
const pattern = new RegExp(`[${digit}](?:[ -]?[${digit}])+|[${digit}](?=[年月日号])`, "g");
const hasAny = new RegExp(`[${digit}]`);

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
