import { AppError } from "../../errors.ts";
import type { Ask, Complete } from "./pattern.ts";
import type { Voice } from "./vote.ts";

/** Members that must answer for a group to have one. */
export const QUORUM = 2;

/**
 * Asks members in parallel. Those that failed are left out, and named in `warnings`.
 */
export async function askMembers(
  complete: Complete,
  asks: readonly { member: number; ask: Ask }[],
  warnings: string[],
): Promise<Voice[]> {
  const answers = await Promise.all(asks.map(({ ask }) => complete(ask)));
  return asks.flatMap(({ member, ask }, index) => {
    const text = answers[index];
    if (text !== undefined) return [{ member, model: ask.model, text, weight: 1 }];
    warnings.push(`Member ${member} (${ask.model}) did not answer at ${ask.step} and was left out.`);
    return [];
  });
}

/** The error of a run that too few models answered. The last failure, which is on the record, tells whether it may pass. */
export function tooFewAnswers(needed: number, got: number): AppError {
  return new AppError("provider_failed", `The pattern needs ${needed} answers, and ${got} came.`, {
    details: { needed, got },
    retryable: true,
  });
}
