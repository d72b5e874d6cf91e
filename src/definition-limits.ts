/** Longest description that a list shows, in characters. */
const MAX_SHOWN_DESCRIPTION = 300;

/** A description as lists show it, at most 300 characters and a mark that it was cut. */
export function shortDescription(text: string): string {
  if (text.length <= MAX_SHOWN_DESCRIPTION) return text;
  const cut = text.slice(0, MAX_SHOWN_DESCRIPTION);
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)}…`; // not half a surrogate pair
}
