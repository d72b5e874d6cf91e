import { z } from "zod";

/**
 * A schema of objects with at most `max` fields, which are counted before any of them is parsed. Records and loose objects
 * that a caller fills need it: they keep, or report, every field, and millions fit into one body.
 * A field `__proto__` is refused, because records would silently drop it.
 */
export function withFewFields<S extends z.ZodType>(max: number, schema: S) {
  return z.preprocess((value, context) => {
    if (typeof value !== "object" || value === null) return value;
    const problem =
      Object.keys(value).length > max
        ? `must not have more than ${max} fields`
        : Object.hasOwn(value, "__proto__") && "must not have a field of the name __proto__";
    if (!problem) return value;
    context.addIssue({ code: "custom", message: problem });
    return z.NEVER;
  }, schema);
}

type Bounds = { values: number; levels: number; characters: number };

/** Whether a JSON value is within these bounds: inner values, levels below itself, and characters when it is printed. */
export function isSmallJson(value: unknown, { values, levels, characters }: Bounds): boolean {
  let seen = 0;
  const isSmall = (part: unknown, level: number): boolean => {
    seen += 1;
    if (seen > values || level > levels) return false;
    if (typeof part !== "object" || part === null) return true;
    return Object.values(part).every((inner) => isSmall(inner, level + 1));
  };
  return isSmall(value, 0) && JSON.stringify(value).length <= characters;
}
