import type { Ask, PatternRun } from "./pattern.ts";

/** Caps on the tokens of an answer: a full text, and a verdict. */
const ANSWER_TOKENS = 4_096;
const VERDICT_TOKENS = 1_024;

/** A part of a prompt that comes from elsewhere: earlier answers, feedback, criteria. */
export type Section = { title: string; text: string };

/** What a pattern gives of a call. */
export type Call = Pick<Ask, "step" | "role" | "model"> & { task: string; sections?: readonly Section[] };

/**
 * Asks for an answer in the profile's voice. The question stands last in the user's message, after the material
 * for the answer, each part under its title; instructions are in the system message alone.
 */
export function askAnswer(run: PatternRun, { task, sections, ...call }: Call): Promise<string | undefined> {
  const { prompt, temperature } = run.profile;
  const system = instructions(`${prompt}\n${task}`);
  const user = toMessage(sections, run.input);
  return run.complete({ ...call, system, user, temperature, maxTokens: ANSWER_TOKENS });
}

/** Asks to weigh answers: as predictable as the model can be, and short. */
export function askVerdict(run: PatternRun, { task, sections, ...call }: Call): Promise<string | undefined> {
  const criteria = `Judge by these criteria: ${run.profile.criteria.join("; ")}.`;
  const system = instructions(`${task}\n${criteria}`);
  const user = toMessage(sections, run.input);
  return run.complete({ ...call, system, user, temperature: 0, maxTokens: VERDICT_TOKENS });
}

/** Marked as such, so that no model quotes its instructions. */
function instructions(text: string): string {
  return `<instructions>\n${text}\n</instructions>`;
}

function toMessage(sections: readonly Section[] | undefined, input: string): string {
  if (sections === undefined || sections.length === 0) return input;
  return [...sections, { title: "Question", text: input }].map(({ title, text }) => `[${title}]\n${text}`).join("\n\n");
}
