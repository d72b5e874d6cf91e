import { AppError } from "../lib/errors.ts";
import { type DocumentWarning, MAX_WARNED_PAGES } from "../store/document-warning.ts";

/** Bounds of what is kept of a document's account. */
const MAX_WARNINGS = 20;
const MAX_MESSAGE = 500; // characters

/** Warnings of text that is there: it was read in another way. */
const losesNothing: ReadonlySet<DocumentWarning["code"]> = new Set(["read_by_ocr"]);
const isLoss = ({ code }: DocumentWarning) => !losesNothing.has(code);

/**
 * The warnings as they are kept: those of a loss first, and bounded in number, length and pages. The last one says how many
 * further ones there are, so that nothing is dropped in silence.
 */
export function boundWarnings(given: readonly DocumentWarning[]): DocumentWarning[] {
  const sorted = [...given.filter(isLoss), ...given.filter((warning) => !isLoss(warning))];
  const kept = sorted.slice(0, MAX_WARNINGS).map(({ code, message, pages }) => ({
    code,
    message: message.length <= MAX_MESSAGE ? message : `${message.slice(0, MAX_MESSAGE - 1)}…`,
    ...(pages && pages.length > 0 ? { pages: pages.slice(0, MAX_WARNED_PAGES) } : {}),
  }));
  const [last] = kept.slice(-1);
  if (sorted.length <= MAX_WARNINGS || !last) return kept;
  const more = sorted.length - MAX_WARNINGS + 1;
  return [...kept.slice(0, -1), { code: last.code, message: `${more} further warnings are not shown.` }];
}

/** Refuses a source of which something would be lost. @throws AppError `source_incomplete`, with the warnings in `details`. */
export function assertComplete(warnings: readonly DocumentWarning[]): void {
  const losses = warnings.filter(isLoss);
  if (losses.length === 0) return;
  const reasons = losses.map(({ message }) => message).join(" ");
  const said = reasons.length <= MAX_MESSAGE ? reasons : `${reasons.slice(0, MAX_MESSAGE - 1)}…`;
  throw new AppError("source_incomplete", `The source cannot be read completely, as was required. ${said}`, {
    details: { warnings: losses },
  });
}
