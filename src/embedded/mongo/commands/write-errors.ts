import type { Document } from "../bson/bson-types.ts";
import { CommandError, commandError } from "../command-error.ts";

/**
 * Runs the parts of a bulk write one after the other. A part that is refused is noted under its place; when the write is
 * ordered the rest is left undone.
 */
export function runParts(count: number, isOrdered: boolean, runPart: (index: number) => void): Document[] {
  const errors: Document[] = [];
  for (let index = 0; index < count; index++) {
    try {
      runPart(index);
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      errors.push({ index, code: error.code, errmsg: error.message, ...error.details });
      if (isOrdered) break;
    }
  }
  return errors;
}

/** The fields of a bulk write's answer that tell of its errors: none when there are none. */
export function errorFields(errors: readonly Document[]): Document {
  return errors.length === 0 ? {} : { writeErrors: errors };
}

export const maxWriteBatch = 100_000;

/** Refuses a bulk write without parts, or with too many. @throws CommandError 16. */
export function checkBatchSize(count: number): void {
  if (count > 0 && count <= maxWriteBatch) return;
  throw commandError(
    "InvalidLength",
    `Write batch sizes must be between 1 and ${maxWriteBatch}. Got ${count} operations.`,
  );
}
