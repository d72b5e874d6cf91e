/** A piece of a line in one format. */
export type Inline = { text: string; isStruck?: boolean; script?: Script | undefined };
/** Raised, or lowered. */
export type Script = "^" | "_";

const ORDINAL = /^(st|nd|rd|th|er|re|e|ère|ème|o|a|º|ª)$/iu;
const SIGNS = /^[^\p{L}\p{N}+\-−∓±]*$/u; // as of a trade mark, or an asterisk
const SIMPLE = /^[+\-−]?[\p{L}\p{N}]+([.,][\p{L}\p{N}]+)*$/u;

/**
 * Joins the pieces of a line. What is struck out stands between `~~`; a raised or lowered piece behind a letter, a number or a
 * bracket has `^` or `_` before it: `10^6`, `H_2O`, `x^(n+1)`. Soft hyphens are left out.
 */
export function joinInlines(pieces: readonly Inline[]): string {
  let text = "";
  for (const run of runsOf(pieces)) {
    const written = run.script ? withScript(text, run.text, run.script) : run.text;
    text += run.isStruck ? struck(written) : written;
  }
  return text;
}

/** Neighbours in the same format as one. */
function runsOf(pieces: readonly Inline[]): Inline[] {
  const runs: { format: Inline; texts: string[] }[] = [];
  for (const piece of pieces) {
    const last = runs.at(-1);
    const isSame = last?.format.isStruck === piece.isStruck && last?.format.script === piece.script;
    if (last && isSame) last.texts.push(piece.text);
    else runs.push({ format: piece, texts: [piece.text] });
  }
  return runs
    .map(({ format, texts }) => ({ ...format, text: texts.join("").replaceAll("\u00ad", "") }))
    .filter(({ text }) => text !== "");
}

function withScript(before: string, text: string, script: Script): string {
  const inner = text.trim();
  const isPlain = SIGNS.test(inner) || !/[\p{L}\p{N})\]}]$/u.test(before);
  if (isPlain || (script === "^" && ORDINAL.test(inner) && /\d$/.test(before))) return text;
  return text.replace(inner, () => `${script}${SIMPLE.test(inner) ? inner : `(${inner})`}`);
}

function struck(text: string): string {
  const inner = text.trim();
  return inner === "" ? text : text.replace(inner, () => `~~${inner}~~`);
}
