/** JSON with so many digits in a row may hold a number that a double cannot. */
const manyDigits = /\d{16}/;
const wholeNumber = /^-?\d+$/;

/**
 * As `JSON.parse`, but a whole number beyond 2^53, which a double would round, becomes a text with all its digits. @throws
 * SyntaxError.
 */
export function parseKeepingDigits(text: string): unknown {
  if (!manyDigits.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key: string, value: unknown, context?: { source?: string }) => {
    const source = context?.source ?? "";
    const isRounded = typeof value === "number" && !Number.isSafeInteger(value) && wholeNumber.test(source);
    return isRounded ? source : value;
  });
}

/** The same; undefined, which no JSON is, for a text that is none. */
export function tryParseKeepingDigits(text: string): unknown {
  try {
    return parseKeepingDigits(text);
  } catch {
    return undefined;
  }
}
