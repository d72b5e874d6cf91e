import type { Ask, PatternRun } from "./pattern.ts";

/** Caps on the tokens of an answer: a full text, and a verdict. */
const ANSWER_TOKENS = 4_096;
const VERDICT_TOKENS = 1_024;

/** A part of a prompt that comes from elsewhere: earlier answers, feedback, criteria. */
export type Section = { title: string; text: string };

/**
 * A call that writes an answer in the profile's voice. The question stands last in the user's message, what it is to be
 * answered from before it, each part under its title; instructions are in the system message alone.
 */
export function askAnswer(
  { input, profile }: Pick<PatternRun, "input" | "profile">,
  call: Pick<Ask, "step" | "role" | "model"> & { task: string; sections?: readonly Section[] },
): Ask {
  const { step, role, model, task, sections = [] } = call;
  return {
    step,
    role,
    model,
    system: instructions(`${profile.prompt}\n${task}`),
    user: toMessage(sections, input),
    temperature: profile.temperature,
    maxTokens: ANSWER_TOKENS,
  };
}

/** A call that weighs answers: as predictable as the model can be, and short. */
export function askVerdict(
  { input, profile }: Pick<PatternRun, "input" | "profile">,
  call: Pick<Ask, "step" | "role" | "model"> & { task: string; sections?: readonly Section[] },
): Ask {
  const { step, role, model, task, sections = [] } = call;
  const criteria = `Judge by these criteria: ${profile.criteria.join("; ")}.`;
  return {
    step,
    role,
    model,
    system: instructions(`${task}\n${criteria}`),
    user: toMessage(sections, input),
    temperature: 0,
    maxTokens: VERDICT_TOKENS,
  };
}

/** Marked as such, so that no model takes what it is told to do for something to quote. */
function instructions(text: string): string {
  return `<instructions>\n${text}\n</instructions>`;
}

function toMessage(sections: readonly Section[], input: string): string {
  if (sections.length === 0) return input;
  return [...sections, { title: "Question", text: input }].map(({ title, text }) => `[${title}]\n${text}`).join("\n\n");
}
