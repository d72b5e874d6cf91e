import { AppError } from "../../errors.ts";
import type { SourceType } from "../schemas.ts";

/** A stretch of a document's text under one heading, or on one page. */
export type Section = {
  text: string;
  /** From 1, where the type has pages. */
  page?: number;
  /** The headings above the text, outermost first, joined by " > ". */
  heading?: string;
};

export type ParsedDocument = { type: SourceType; title?: string; sections: Section[] };

/** A source that cannot be read as a document; the reason is for the caller. */
export function unreadable(reason: string, cause?: unknown): AppError {
  return new AppError("source_unreadable", `The source cannot be read. ${reason}`, { cause });
}

/** Keeps the headings above the current text; a heading closes those of its level and below. */
export function makeHeadingPath() {
  const path: { level: number; text: string }[] = [];
  return {
    enter(level: number, text: string): void {
      while ((path.at(-1)?.level ?? 0) >= level) path.pop();
      path.push({ level, text: text.slice(0, 200) });
    },
    current: (): string | undefined => (path.length === 0 ? undefined : path.map(({ text }) => text).join(" > ")),
  };
}

/** Tidies text for reading: no control characters, no trailing blanks, at most one blank line in a row. */
export function tidy(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(controlCharacters, "")
    .replace(/(?<![^\S\n])[^\S\n]+\n/g, "\n") // from the first blank of a run only, else a long run takes quadratic time
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

/** Everything below the space except tab and line feed, and the lone surrogates that no encoding can carry. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f\ufffe\uffff]/g;
