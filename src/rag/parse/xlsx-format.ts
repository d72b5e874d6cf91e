import { dateFromSerial, format, getFormatFromId, isDateFormat } from "numfmt";
import { childOf, elementsOf, type XmlNode } from "./office-xml.ts";

const DAYS_TO_1904 = 1_462;
const MAX_CODE = 255; // characters; of Excel's own
const MAX_DAY = 2_958_466; // the first of the year 10000
const DURATION = /\[(h+|m+|s+)\]/i;

/** The look of a cell: how its number is written, and whether it is struck out. */
export type CellFormat = { write(value: number): string; isStruck: boolean };

/**
 * Reads the formats of cells; each is asked for by its number. A number is written as the cell shows it, without marks between
 * its thousands; a date in ISO 8601, if the cell shows day, month and year.
 */
export function readFormats(root: XmlNode | undefined, { isFrom1904 }: { isFrom1904: boolean }) {
  const codes = new Map<number, string>();
  for (const { attributes } of elementsOf(childOf(root, "x:numFmts"))) {
    codes.set(Number(attributes.numFmtId), attributes.formatCode ?? "");
  }
  const fonts = elementsOf(childOf(root, "x:fonts")).map((font) => {
    const strike = childOf(font, "x:strike");
    return strike !== undefined && !/^(0|false)$/.test(strike.attributes.val ?? "1");
  });
  const kinds = elementsOf(childOf(root, "x:cellXfs")).map(({ attributes }) => attributes);
  const writers = new Map<string, (value: number) => string>();
  const formats = new Map<string, CellFormat>();
  const writerOf = (code: string) => {
    const known = writers.get(code) ?? makeWriter(code, isFrom1904);
    writers.set(code, known);
    return known;
  };
  return (style: string): CellFormat => {
    const known = formats.get(style);
    if (known) return known;
    const kind = kinds[Number(style)];
    const id = Number(kind?.numFmtId ?? 0);
    const code = codes.get(id) ?? builtIn(id);
    const made = { write: writerOf(code), isStruck: fonts[Number(kind?.fontId ?? 0)] ?? false };
    formats.set(style, made);
    return made;
  };
}

function builtIn(id: number): string {
  const code: unknown = getFormatFromId(id);
  return typeof code === "string" ? code : "General";
}

function makeWriter(code: string, isFrom1904: boolean): (value: number) => string {
  if (code === "" || code.length > MAX_CODE || /^(general|@)$/i.test(code)) return plain;
  const isDate = isDateFormat(code);
  const ungrouped = code.replace(/([#0?]),(?=[#0?])/g, "$1");
  const shown = (value: number) => {
    try {
      return String(format(ungrouped, value)).replace(/\s+/g, " ").trim();
    } catch {
      return plain(value); // a code that is not valid
    }
  };
  if (!isDate || DURATION.test(code)) return shown;
  const parts = partsOf(code);
  return (value) => {
    const day = isFrom1904 ? value + DAYS_TO_1904 : value;
    if (day < 0 || day >= MAX_DAY) return plain(value);
    return parts.hasDate ? isoOf(day, parts) : shown(day);
  };
}

type DateParts = { hasDate: boolean; hasTime: boolean; hasSeconds: boolean };

function partsOf(code: string): DateParts {
  const [first = ""] = code.replace(/"[^"]*"|\\.|\[[^\]]*\]|[_*]./g, "").split(";");
  const has = (letter: RegExp) => letter.test(first);
  return { hasDate: has(/y/i) && has(/m/i) && has(/d/i), hasTime: has(/h/i), hasSeconds: has(/s/i) };
}

function isoOf(day: number, { hasTime, hasSeconds }: DateParts): string {
  const [year = 0, month = 0, date = 0, hour = 0, minute = 0, second = 0] = dateFromSerial(day) ?? [];
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const time = hasTime ? ` ${two(hour)}:${two(minute)}${hasSeconds ? `:${two(second)}` : ""}` : "";
  return `${String(year).padStart(4, "0")}-${two(month)}-${two(date)}${time}`;
}

/** A number as it is stored, without the noise of its last digits. */
function plain(value: number): string {
  return String(Number(value.toPrecision(15)));
}
