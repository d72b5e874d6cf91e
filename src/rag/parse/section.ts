import { AppError } from "../../lib/errors.ts";
import type { DocumentWarning, SourceType } from "../schemas.ts";

/** Consecutive text of a document under one heading, or on one page. */
export type Section = {
  text: string;
  /** From 1, where the type has pages. */
  page?: number;
  /** The headings above the text, outermost first. */
  headings?: readonly string[];
};

/** Deepest heading of a path: those below stand beside it. */
const MAX_LEVEL = 8;
const MAX_HEADING = 200; // characters

export type ParsedDocument = {
  type: SourceType;
  title?: string;
  sections: Section[];
  /** What of the source the sections do not hold. */
  warnings?: DocumentWarning[];
};

/** The error of a source that cannot be read as a document; `reason` is shown to the caller. */
export function unreadable(reason: string, cause?: unknown): AppError {
  return new AppError("source_unreadable", `The source cannot be read. ${reason}`, { cause });
}

/** A title for a text without one: its first line that has a letter or number, without Markdown's heading marks. */
export function firstLineOf(text: string): string | undefined {
  const lines = text.slice(0, 10_000).split(/[\n\r\u2028\u2029]/);
  const line = (lines.find((each) => /[\p{L}\p{N}]/u.test(each)) ?? lines.find((each) => each.trim() !== ""))?.trim();
  return line?.replace(/^#{1,6}\s+/, "").slice(0, 120);
}

/** Collects the sections of a document that is cut at its headings. */
export function collectSections() {
  const sections: Section[] = [];
  const path: { level: number; text: string }[] = [];
  let headings: readonly string[] | undefined; // of the path: its sections share it
  return {
    sections,
    firstHeading: undefined as string | undefined,
    /** Adds a text under the headings entered so far, unless it is blank. */
    add(source: string, place: Pick<Section, "page"> = {}): void {
      const text = tidy(source);
      if (text === "") return;
      headings ??= path.map((entered) => entered.text);
      sections.push({ text, ...place, ...(path.length === 0 ? {} : { headings }) });
    },
    /** Enters a heading, which closes those of its level and below. */
    enter(level: number, text: string): void {
      const depth = Math.min(level, MAX_LEVEL);
      while ((path.at(-1)?.level ?? 0) >= depth) path.pop();
      path.push({ level: depth, text: text.slice(0, MAX_HEADING) });
      headings = undefined;
      this.firstHeading ??= text;
    },
  };
}

/** Ends lines by line feeds, also where a page or a vertical tab ends one; removes control characters, trailing blanks, and all but one of consecutive blank lines. */
export function tidy(text: string): string {
  return text
    .replace(lineEnds, "\n")
    .replace(controlCharacters, "")
    .replace(/(?<![^\S\n])[^\S\n]+\n/g, "\n") // matches only at the start of a run: else a long run takes quadratic time
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

const lineEnds = /\r\n?|[\v\f\u0085\u2028\u2029]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern is to match them
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f\ufffe\uffff]/g;
