const ROMAN: readonly (readonly [number, string])[] = [
  [1000, "m"],
  [900, "cm"],
  [500, "d"],
  [400, "cd"],
  [100, "c"],
  [90, "xc"],
  [50, "l"],
  [40, "xl"],
  [10, "x"],
  [9, "ix"],
  [5, "v"],
  [4, "iv"],
  [1, "i"],
];
const MAX_ROMAN = 10_000;
const MAX_LETTERS = 20; // Word repeats the letter: z, aa, bb

const formats: Readonly<Record<string, (value: number) => string>> = {
  none: () => "",
  decimalZero: (value) => String(value).padStart(2, "0"),
  upperRoman: (value) => roman(value).toUpperCase(),
  lowerRoman: roman,
  upperLetter: (value) => letters(value).toUpperCase(),
  lowerLetter: letters,
  ordinal: (value) => `${value}${suffixOf(value)}`,
};

/** Writes a number as a list of Word shows it. A format that is not known, as those of other scripts, gives its digits. */
export function formatNumber(value: number, format: string): string {
  return (formats[format] ?? String)(value);
}

function roman(value: number): string {
  if (value < 1 || value > MAX_ROMAN) return String(value);
  let left = value;
  let text = "";
  for (const [worth, sign] of ROMAN) {
    while (left >= worth) {
      text += sign;
      left -= worth;
    }
  }
  return text;
}

function letters(value: number): string {
  const times = Math.ceil(value / 26);
  if (value < 1 || times > MAX_LETTERS) return String(value);
  return String.fromCharCode(97 + ((value - 1) % 26)).repeat(times);
}

function suffixOf(value: number): string {
  if (value % 100 >= 11 && value % 100 <= 13) return "th";
  return ["th", "st", "nd", "rd"][value % 10] ?? "th";
}
