import { ExpressionProblem } from "./expressions.ts";

/** Where in a URL a value stands. */
type Place = "host" | "path" | "query";

const namePart = /^[A-Za-z0-9_-]+$/;
const wholeHost = /^[A-Za-z0-9_.-]+(:\d{1,5})?$/;
/** A segment that a URL parser removes, with the one before it. */
const dots = /^(\.|%2e){1,2}$/i;

/** A part of a template: what its author has written, or the value of an expression. */
export type UrlPart = { text: string; isValue: boolean };

/**
 * A URL of texts and values. A value is encoded for where it stands, so that it is one segment of the path or one part of the
 * query, and never changes the host or the depth of the path. A value at its very start, as a whole URL, stays as it is.
 * @throws ExpressionProblem for a value that cannot stand where it does.
 */
export function joinUrl(parts: readonly UrlPart[]): string {
  let url = "";
  let written = ""; // the same without values: they are no syntax
  for (const [index, { text, isValue }] of parts.entries()) {
    if (!isValue || url.trim() === "") {
      url += text;
      written += text;
      continue;
    }
    url += encode(text, { place: placeAfter(written), before: written, after: parts[index + 1]?.text ?? "" });
    written += "x";
  }
  rejectDots(url, parts);
  return url;
}

function placeAfter(before: string): Place {
  if (/[?#]/.test(before)) return "query";
  return /^\s*[a-z][a-z0-9+.-]*:\/\/[^/\\]*$/i.test(before) ? "host" : "path";
}

function encode(value: string, { place, before, after }: { place: Place; before: string; after: string }): string {
  if (place !== "host") {
    const isSegment = place === "path" && before.endsWith("/") && /^([/?#]|$)/.test(after);
    if (isSegment && value === "")
      throw new ExpressionProblem("The value is empty, where a segment of the path is.", 0);
    return encodeURIComponent(value.toWellFormed());
  }
  const isWhole = before.endsWith("//") && /^([:/?#]|$)/.test(after);
  if ((isWhole ? wholeHost : namePart).test(value)) return value;
  throw new ExpressionProblem("The value is no part of a host name: it has letters, digits, - and _ alone.", 0);
}

/** @throws ExpressionProblem for a segment that is `.` or `..` by a value: it would remove others. */
function rejectDots(url: string, parts: readonly UrlPart[]): void {
  if (!parts.some(({ isValue }, index) => isValue && index > 0)) return;
  const [path = ""] = url.split(/[?#]/, 1);
  if (!path.split("/").some((segment) => dots.test(segment))) return;
  throw new ExpressionProblem("A segment of the path is . or .., which would lead elsewhere.", 0);
}
