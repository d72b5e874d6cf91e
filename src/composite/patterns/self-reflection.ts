import { normalise, readJson } from "./answers.ts";
import { type PatternOutcome, type PatternRun, tooFewAnswers } from "./pattern.ts";

const MAX_REFINEMENTS = 3;

type Draft = { text: string; score?: number | undefined };

/**
 * Self-Refine (Madaan et al. 2023, arXiv:2303.17651): one model drafts, gives itself specific feedback with a score, and
 * refines, until the feedback is STOP or three refinements are made. The best-scored draft wins; the last refinement, which
 * has no score, wins only when it refined the best one.
 *
 * Calls: 1 + 2r, r being the refinements (0 to 3), one after the other, of the first model; one more when feedback is
 * STOP before the third. A call that fails ends the loop, and the best draft so far wins.
 */
export async function runSelfReflection(run: PatternRun): Promise<PatternOutcome> {
  const model = run.models[0] ?? run.judge;
  const task = "Answer the question as well as you can.";
  const first = await run.askAnswer({ step: "draft", role: "author", model, task });
  if (first === undefined) throw tooFewAnswers(1, 0);
  const drafts: Draft[] = [{ text: first }];
  for (let round = 1; round <= MAX_REFINEMENTS; round += 1) {
    const current = drafts.at(-1) ?? { text: first };
    const feedback = await run.askVerdict({
      step: `feedback-${round}`,
      role: "critic",
      model,
      task: 'Review the draft answer. Begin with a line "Score: N/10". Then name what to change and how, quoting the words that you mean. Write the line "STOP" instead when nothing has to change.',
      sections: [{ title: "Draft", text: current.text }],
    });
    if (feedback === undefined) {
      run.warnings.push(`There was no feedback in round ${round}; the best draft until then was taken.`);
      break;
    }
    current.score = readScore(feedback);
    if (isStop(feedback)) break;
    const refined = await run.askAnswer({
      step: `refinement-${round}`,
      role: "author",
      model,
      task: "Rewrite the draft answer by the feedback. Keep what is right. Give the answer alone.",
      sections: [
        { title: "Draft", text: current.text },
        { title: "Feedback", text: feedback },
      ],
    });
    if (refined === undefined) {
      run.warnings.push(`Refinement ${round} failed; the best draft until then was taken.`);
      break;
    }
    if (normalise(refined) === normalise(current.text)) break;
    drafts.push({ text: refined });
  }
  return { output: bestOf(drafts).text };
}

/** The best-scored draft, of equal ones the latest; the last one, when it has no score, counts as the one it refined. */
function bestOf(drafts: readonly Draft[]): Draft {
  const scoreOf = (index: number) =>
    drafts[index]?.score ?? (index === drafts.length - 1 ? drafts[index - 1]?.score : undefined) ?? 0;
  const best = drafts.reduce((best, _, index) => (scoreOf(index) >= scoreOf(best) ? index : best), 0);
  return drafts[best] ?? { text: "" };
}

/** "Score: 7/10", "score = 7", or the field `score` of a JSON object, as a share of ten. */
function readScore(feedback: string): number | undefined {
  const field = readJson(feedback)?.score;
  if (typeof field === "number") return field;
  const [, score, of] = /score\W{0,4}(\d+(?:\.\d+)?)(?:\s*(?:\/|out of)\s*(\d+))?/i.exec(feedback) ?? [];
  if (score === undefined) return undefined;
  return (Number(score) * 10) / (Number(of ?? 10) || 10);
}

function isStop(feedback: string): boolean {
  return readJson(feedback)?.stop === true || /^\W*stop\W*$/im.test(feedback);
}
