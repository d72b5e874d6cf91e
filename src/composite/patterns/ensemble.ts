import { readJson } from "./answers.ts";
import { type PatternOutcome, type PatternRun, tooFewAnswers } from "./pattern.ts";
import { groupByAnswer, toVerdict, type Voice, wordAgreement } from "./vote.ts";

/** Answers that are fused. */
const FUSED = 3;

/**
 * All models answer in parallel. Discrete answers are voted on (self-consistency, Wang et al. 2022, arXiv:2203.11171). Free
 * texts are ranked by a judge pair by pair, each pair in both orders so that its place does not count, in one bubble pass
 * that carries the best to the front; then the first three are fused (LLM-Blender, Jiang et al. 2023, arXiv:2306.02561).
 *
 * Calls: n members; for free texts also 2 (n - 1) judgements, the two orders of a pair in parallel, and 1 fusion. Texts that
 * are all the same need no judge. One answer left is returned as it is; without a fusion the best-ranked answer is.
 */
export async function runEnsemble(run: PatternRun): Promise<PatternOutcome> {
  const voices = await run.askMembers(run.members, ({ member }) => ({
    step: `member-${member}`,
    role: "member",
    task: 'Answer the question. If it has one definite answer (a number, a name, a choice), end with a line "Answer: " and that answer alone.',
  }));
  const [only] = voices;
  if (!only) throw tooFewAnswers(1, 0);
  if (voices.length === 1) {
    run.warnings.push("Only one member answered; nothing could be compared.");
    return { output: only.text };
  }
  const groups = groupByAnswer(voices);
  if (groups) return { output: groups[0]?.voices[0]?.text ?? only.text, ...toVerdict(groups) };
  const ranked = await rank(run, voices);
  const best = ranked[0] ?? only;
  const agreement = wordAgreement(voices.map(({ text }) => text));
  const fused = await run.askAnswer({
    step: "fusion",
    role: "fuser",
    model: run.judge,
    task: "Make one answer from the candidates, which are sorted from best to worst. Take the best of each, settle contradictions, add nothing of your own. Give the answer alone.",
    sections: ranked.slice(0, FUSED).map(({ text }, index) => ({ title: `Candidate ${index + 1}`, text })),
  });
  if (fused === undefined) run.warnings.push("The fusion failed; this is the best-ranked answer.");
  return { output: fused ?? best.text, agreement };
}

/** One bubble pass from the end to the front. */
async function rank(run: PatternRun, voices: readonly Voice[]): Promise<Voice[]> {
  const ranked = [...voices];
  let unread = 0;
  for (let place = ranked.length - 1; place > 0; place -= 1) {
    const [left, right] = [ranked[place - 1], ranked[place]];
    if (!left || !right) continue;
    const verdicts = await Promise.all([compare(run, left, right), compare(run, right, left)]);
    unread += verdicts.filter((winner) => winner === undefined).length;
    // Only a judge that prefers it in both orders moves an answer; anything else is a tie.
    if (verdicts.every((winner) => winner === right)) [ranked[place - 1], ranked[place]] = [right, left];
  }
  if (unread > 0) run.warnings.push(`${unread} judgements failed or could not be read, and counted as ties.`);
  return ranked;
}

/** Which of two answers the judge prefers; undefined when its verdict cannot be read. */
async function compare(run: PatternRun, first: Voice, second: Voice): Promise<Voice | undefined> {
  const verdict = await run.askVerdict({
    step: `judge-${first.member}-${second.member}`,
    role: "judge",
    model: run.judge,
    task: 'Which answer is better, A or B? Answer with a JSON object alone: {"better": "A"} or {"better": "B"}.',
    sections: [
      { title: "Answer A", text: first.text },
      { title: "Answer B", text: second.text },
    ],
  });
  if (verdict === undefined) return undefined;
  const better = readJson(verdict)?.better ?? /^\W*(?:answer )?([AB])\b/i.exec(verdict.trim())?.[1];
  const letter = typeof better === "string" ? better.trim().toUpperCase() : "";
  return letter === "A" ? first : letter === "B" ? second : undefined;
}
