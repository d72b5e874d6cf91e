import { AppError } from "../../lib/errors.ts";
import type { Profile } from "../profiles.ts";
import type { Dissent, Voice } from "./vote.ts";

/** Members that must answer for a group to have one. */
export const QUORUM = 2;
/** Caps on the tokens of an answer: a full text, and a verdict. */
const ANSWER_TOKENS = 4_096;
const VERDICT_TOKENS = 1_024;

/** One model call of a pattern. */
export type Ask = {
  /** Names the call within its run, and is the same at every attempt: an answer that was recorded under it is used again. */
  step: string;
  /** What the call is for, as `member`, `critic` or `judge`. */
  role: string;
  model: string;
  system: string;
  user: string;
  /** For models that take one. */
  temperature: number;
  maxTokens: number;
};

/**
 * Asks a model. Answers undefined when the call failed, or the answer was empty; the failure is on the run's record then.
 * Rejects only when the whole run has to stop: it was cancelled, or the budget is spent.
 */
export type Complete = (ask: Ask) => Promise<string | undefined>;

/** What a run of a pattern is made of. `models` are its members in order; `judge` serves the roles above them. */
type PatternSetup = {
  input: string;
  profile: Profile;
  models: readonly string[];
  judge: string;
  complete: Complete;
};

export type PatternOutcome = {
  output: string;
  /** Share of the voices that agree with the output, 0 to 1; only of patterns with several voices on one question. */
  agreement?: number;
  dissent?: Dissent[];
};

/** A pattern: asks models in its order and makes one answer. @throws AppError `provider_failed` when too few answered. */
export type Pattern = (run: PatternRun) => Promise<PatternOutcome>;

/** A part of a prompt that comes from elsewhere: earlier answers, feedback, criteria. */
export type Section = { title: string; text: string };

/** What a pattern gives of a call. */
type Call = Pick<Ask, "step" | "role" | "model"> & { task: string; sections?: readonly Section[] };

/** A model in its place among those of a run, from 1. */
type Member = { member: number; model: string };

/** What a pattern works with. */
export type PatternRun = ReturnType<typeof openPatternRun>;

/** Opens a run of a pattern: how it asks, and what it has to report besides its outcome. */
export function openPatternRun({ input, profile, models, judge, complete }: PatternSetup) {
  const warnings: string[] = [];
  /**
   * Instructions are in the system message alone, marked as such, so that no model quotes them. The question stands last in
   * the user's message, after the material for the answer, each part under its title.
   */
  const ask = (
    { step, role, model, sections = [] }: Call,
    { instructions, ...options }: { instructions: string; temperature: number; maxTokens: number },
  ) => {
    const system = `<instructions>\n${instructions}\n</instructions>`;
    const parts = [...sections, { title: "Question", text: input }].map(({ title, text }) => `[${title}]\n${text}`);
    const user = sections.length === 0 ? input : parts.join("\n\n");
    return complete({ step, role, model, system, user, ...options });
  };
  /** Asks for an answer in the profile's voice. */
  const askAnswer = (call: Call) => {
    const { prompt, temperature } = profile;
    return ask(call, { instructions: `${prompt}\n${call.task}`, temperature, maxTokens: ANSWER_TOKENS });
  };
  /** Asks to weigh answers: as predictable as the model can be, and short. */
  const askVerdict = (call: Call) => {
    const instructions = `${call.task}\nJudge by these criteria: ${profile.criteria.join("; ")}.`;
    return ask(call, { instructions, temperature: 0, maxTokens: VERDICT_TOKENS });
  };
  /** Asks members in parallel. Those that failed are left out, with a warning. */
  const askMembers = async <M extends Member>(members: readonly M[], toCall: (member: M) => Omit<Call, "model">) => {
    const calls = members.map((member) => ({ ...toCall(member), model: member.model }));
    const answers = await Promise.all(calls.map(askAnswer));
    return members.flatMap(({ member, model }, index): Voice[] => {
      const text = answers[index];
      if (text !== undefined) return [{ member, model, text, weight: 1 }];
      warnings.push(`Member ${member} (${model}) did not answer at ${calls[index]?.step} and was left out.`);
      return [];
    });
  };
  return {
    profile,
    models,
    judge,
    members: models.map((model, index): Member => ({ member: index + 1, model })),
    /** What went wrong without ending the run: members that failed, a judge that could not be read. */
    warnings,
    askAnswer,
    askVerdict,
    askMembers,
  };
}

/** The error of a run that too few models answered. Whether it may pass is known from the last failure, which is recorded. */
export function tooFewAnswers(needed: number, got: number): AppError {
  return new AppError("provider_failed", `The pattern needs ${needed} answers, and ${got} came.`, {
    details: { needed, got },
    retryable: true,
  });
}
