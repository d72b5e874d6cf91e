import { AppError } from "../../errors.ts";
import type { PatternRun } from "./pattern.ts";
import { askAnswer, type Call } from "./prompts.ts";
import type { Voice } from "./vote.ts";

/** Members that must answer for a group to have one. */
export const QUORUM = 2;

/** The members of a run, in order. */
export const membersOf = ({ models }: PatternRun) => models.map((model, index) => ({ member: index + 1, model }));

/** Asks members in parallel. Those that failed are left out, and named in `warnings`. */
export async function askMembers<M extends { member: number; model: string }>(
  run: PatternRun,
  { members, warnings }: { members: readonly M[]; warnings: string[] },
  toCall: (member: M) => Omit<Call, "model">,
): Promise<Voice[]> {
  const calls = members.map((member) => ({ ...toCall(member), model: member.model }));
  const answers = await Promise.all(calls.map((call) => askAnswer(run, call)));
  return members.flatMap(({ member, model }, index) => {
    const text = answers[index];
    if (text !== undefined) return [{ member, model, text, weight: 1 }];
    warnings.push(`Member ${member} (${model}) did not answer at ${calls[index]?.step} and was left out.`);
    return [];
  });
}

/** The error of a run that too few models answered. Whether it may pass is known from the last failure, which is recorded. */
export function tooFewAnswers(needed: number, got: number): AppError {
  return new AppError("provider_failed", `The pattern needs ${needed} answers, and ${got} came.`, {
    details: { needed, got },
    retryable: true,
  });
}
