/** What a warning of a document is about. */
export const documentWarningCodes = [
  "pages_without_text",
  "unreadable_fonts",
  "parts_left_out",
  "charset_uncertain",
  "text_left_out",
  "read_by_ocr",
] as const;

/** Pages that a warning names. */
export const MAX_WARNED_PAGES = 100;

/** Something of its source that a document does not hold, or may hold wrongly. */
export type DocumentWarning = {
  code: (typeof documentWarningCodes)[number];
  message: string;
  /** From 1. */
  pages?: number[] | undefined;
};
