/**
 * Letters that are written in another form than they are typed: ligatures, letters and digits of full or half width, and the
 * positional forms of Hebrew and Arabic, as some PDFs hold them.
 */
const otherForms = /[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f\ufb00-\ufdff\ufe70-\ufefc]+/g;
/** Soft hyphen, zero-width space, word joiner, and a byte-order mark within a text: nobody sees them, and they part words. */
const invisible = /[\u00ad\u200b\u2060\ufeff]/g;
const hyphens = /[\u2010\u2011]/g;

/** A text as it is typed: without invisible characters, and each letter in its common form. Index and query are folded alike. */
export function foldText(text: string): string {
  return text
    .replace(invisible, "")
    .replace(hyphens, "-")
    .replace(otherForms, (letters) => letters.normalize("NFKC"));
}
