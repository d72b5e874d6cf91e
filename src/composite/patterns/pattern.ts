import type { Profile } from "../profiles.ts";

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

/** What a pattern works with. `models` are its members in order; `judge` serves the roles above them. */
export type PatternRun = {
  input: string;
  profile: Profile;
  models: readonly string[];
  judge: string;
  complete: Complete;
};

/** An answer that lost, and the models that gave it. */
export type Dissent = { models: string[]; answer: string };

export type PatternOutcome = {
  output: string;
  /** Share of the voices that agree with the output, 0 to 1; only of patterns with several voices on one question. */
  agreement?: number;
  dissent?: Dissent[];
  /** What went wrong without ending the run: members that failed, a judge that could not be read. */
  warnings: string[];
};

/** A pattern: asks models in its order and makes one answer. @throws AppError `provider_failed` when too few answered. */
export type Pattern = (run: PatternRun) => Promise<PatternOutcome>;
