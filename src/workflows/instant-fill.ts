import type { Fill } from "./evaluate.ts";
import type { Expression } from "./expressions.ts";
import { findRead } from "./scope-texts.ts";
import type { ParsedTexts } from "./templates.ts";

/** Characters of such a step's fields, and of the values that they read, at most. */
const MAX_LENGTH = 1_000;
const MAX_VALUES = 10_000;
/** Characters that all of its operations may look at. The slowest that was found with these bounds takes 2 ms. */
const MAX_READ = 500_000;

/**
 * Whether a step's expressions take so little time, whatever their values are, that none need watch over it: a watch is a thread
 * for each step, which takes 0.4 ms. Their texts are parsed already. Without loops an expression has no more operations than
 * characters; each looks at its values once, and these are no longer than all that is read, added up.
 */
export function isInstant({ fields, scope }: Pick<Fill, "fields" | "scope">, parsed: ParsedTexts): boolean {
  const expressions: Expression[] = [];
  let length = 0;
  for (const { value, kind } of fields) {
    if (typeof value !== "string") return false;
    length += value.length;
    if (length > MAX_LENGTH) return false;
    if (kind !== "condition" && !value.includes("{{")) continue;
    const known = kind === "condition" ? parsed.expression.known(value) : parsed.template.known(value)?.expressions;
    if (known === undefined) return false;
    expressions.push(...[known].flat());
  }
  if (expressions.some(({ repeats }) => repeats)) return false;
  const additions = expressions.reduce((sum, one) => sum + one.additions, 0);
  const { characters } = findRead(scope, expressions);
  return characters <= MAX_VALUES && (additions + 1) * length * (characters + length) <= MAX_READ;
}
