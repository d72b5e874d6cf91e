import type { Fill } from "./evaluate.ts";
import type { Expression } from "./expressions.ts";
import { findRead } from "./scope-texts.ts";
import { textsOf } from "./step-texts.ts";
import type { ParsedTexts } from "./templates.ts";

/** Characters of the values that such a step reads, at most. */
const MAX_VALUES = 10_000;
/** Characters that all of its operations may look at; so its fields have 700 at most. The slowest that was found takes 2 ms. */
const MAX_READ = 500_000;

/**
 * Whether a step's expressions take so little time, whatever their values are, that none need watch over it: a watch is a thread
 * for each step, which takes 0.4 ms. Their texts are parsed already. Without loops an expression has no more operations than
 * characters; each looks at its values once, and these are no longer than all that is read, added up.
 */
export function isInstant({ fields, scope }: Pick<Fill, "fields" | "scope">, parsed: ParsedTexts): boolean {
  if (!fields.every(({ value }) => typeof value === "string")) return false;
  const expressions: Expression[] = [];
  for (const { text, isExpression } of fields.flatMap(textsOf)) {
    const known = isExpression ? parsed.expression.known(text) : parsed.template.known(text);
    if (!known) return false;
    expressions.push(...("expressions" in known ? known.expressions : [known]));
  }
  if (expressions.some(({ repeats }) => repeats)) return false;
  const additions = expressions.reduce((sum, one) => sum + one.additions, 0);
  const length = fields.reduce((sum, { value }) => sum + String(value).length, 0);
  const { characters } = findRead(scope, expressions);
  return characters <= MAX_VALUES && (additions + 1) * length * (characters + length) <= MAX_READ;
}
