import type { DocumentWarning } from "../schemas.ts";
import type { PageRead } from "./pdf-page.ts";

const MAX_PAGES_NAMED = 100;
const MAX_PAGES_SHOWN = 8;

/** What of a PDF its sections do not hold, each with its pages from 1. */
export type Missing = {
  withoutText: number[];
  unread: number[];
  unreadableFonts: number[];
  unknownSigns: number[];
  pictures: number[];
  watermarks: { text: string; page: number }[];
  comments: number[];
  stamps: number[];
  byOcr: number[];
  attachments: number;
};

/** A page of so few letters is a picture, where pictures have so much of it: it has a stamp or a number, but no text. */
const FEW_LETTERS = 80;
const PICTURE_SHARE = 0.5;
/** So many shapes without a letter are a drawing, or letters that are drawn as shapes. */
const MANY_SHAPES = 40;
/** Below this share of a page a picture is an ornament. */
const LEAST_SHARE = 0.01;
/** A picture of one size on so many pages is the logo of their heads, if it is small. */
const RUNNING_FROM = 3;
const MAX_LOGO_SHARE = 0.1;

/** Fewer unknown signs on a page are bullets and ornaments. */
const UNKNOWN_FROM = 5;

/** Tells what of the pages is missing, before text is recognized in pictures. */
export function missingParts(pages: readonly PageRead[], attachments: number): Missing {
  const times = new Map<string, number>();
  for (const share of pages.flatMap(({ pictures }) => pictures)) {
    times.set(share.toFixed(4), (times.get(share.toFixed(4)) ?? 0) + 1);
  }
  const isLogo = (share: number) => share <= MAX_LOGO_SHARE && (times.get(share.toFixed(4)) ?? 0) >= RUNNING_FROM;
  const numbersOf = (fits: (page: PageRead) => boolean) =>
    pages.flatMap((page, index) => (fits(page) ? [index + 1] : []));
  return {
    withoutText: numbersOf(isWithoutText),
    unread: [],
    unreadableFonts: numbersOf(({ hasUnreadable }) => hasUnreadable),
    unknownSigns: numbersOf(({ unknownSigns }) => unknownSigns >= UNKNOWN_FROM),
    pictures: numbersOf(
      (page) => !isWithoutText(page) && page.pictures.some((share) => share >= LEAST_SHARE && !isLogo(share)),
    ),
    watermarks: pages.flatMap(({ watermarks }, index) => watermarks.map((text) => ({ text, page: index + 1 }))),
    comments: numbersOf(({ comments }) => comments > 0),
    stamps: numbersOf(({ stamps }) => stamps > 0),
    byOcr: [],
    attachments,
  };
}

/** Whether a page is a picture, with or without letters around it. One that is blank is none. */
function isWithoutText({ letters, pictures, shapes, hasUnreadable }: PageRead): boolean {
  if (letters === 0) return pictures.length > 0 || shapes >= MANY_SHAPES || hasUnreadable;
  const share = pictures.reduce((sum, each) => sum + each, 0);
  return letters < FEW_LETTERS && share >= PICTURE_SHARE;
}

/** Makes the warnings of a PDF. */
export function toWarnings(missing: Missing): DocumentWarning[] {
  const warnings: DocumentWarning[] = [];
  const add = (code: DocumentWarning["code"], pages: readonly number[], say: (on: string) => string) => {
    const all = [...new Set(pages)].sort((one, other) => one - other);
    if (all.length > 0) warnings.push({ code, message: say(nameOf(all)), pages: all.slice(0, MAX_PAGES_NAMED) });
  };
  add(
    "pages_without_text",
    missing.withoutText,
    (on) => `There is no text on ${on}, only pictures, which were not read.`,
  );
  add(
    "pages_without_text",
    missing.unread,
    (on) =>
      `There is no text on ${on}, and none was recognized: it is not legible, too large, or there was no time left.`,
  );
  add(
    "unreadable_fonts",
    missing.unreadableFonts,
    (on) =>
      `Letters on ${on} are unknown, because their font does not say what its codes stand for; they were left out.`,
  );
  add(
    "unreadable_fonts",
    missing.unknownSigns,
    (on) => `Signs on ${on}, as in equations, are unknown, because their font does not say what its codes stand for.`,
  );
  add("parts_left_out", missing.pictures, (on) => `Pictures on ${on} were not read.`);
  const marks = [...new Set(missing.watermarks.map(({ text }) => `“${text.slice(0, 60)}”`))].slice(0, 5).join(", ");
  const marked = missing.watermarks.map(({ page }) => page);
  add("parts_left_out", marked, (on) => `The watermark on ${on} was left out: ${marks}.`);
  add("parts_left_out", missing.comments, (on) => `Comments on ${on} were left out.`);
  add("parts_left_out", missing.stamps, (on) => `Stamps on ${on} were not read.`);
  if (missing.attachments > 0) {
    const message = `Files are attached, which were not read: ${missing.attachments}.`;
    warnings.push({ code: "parts_left_out", message });
  }
  add("read_by_ocr", missing.byOcr, (on) => `The text of ${on} was recognized in a picture and may have mistakes.`);
  return warnings;
}

/** `page 4`, `4 pages (4, 7–9)`. */
function nameOf(pages: readonly number[]): string {
  if (pages.length === 1) return `page ${pages[0]}`;
  const runs: [number, number][] = [];
  for (const page of pages) {
    const last = runs.at(-1);
    if (last && last[1] === page - 1) last[1] = page;
    else runs.push([page, page]);
  }
  const shown = runs.slice(0, MAX_PAGES_SHOWN).map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`));
  return `${pages.length} pages (${shown.join(", ")}${runs.length > shown.length ? ", …" : ""})`;
}
