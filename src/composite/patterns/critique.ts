import { type PatternOutcome, type PatternRun, tooFewAnswers } from "./pattern.ts";

/**
 * Draft, critique, revision, as in constitutional critique and revision (Bai et al. 2022, arXiv:2212.08073) with another
 * model as the critic: A answers, B criticises the answer by the profile's criteria, A revises it.
 *
 * Calls: 3, one after the other: A, B, A. Without a critique or a revision the draft is the answer, with a warning.
 */
export async function runCritique(run: PatternRun): Promise<PatternOutcome> {
  const [author = run.judge, critic = author] = run.models;
  const task = "Answer the question as well as you can.";
  const draft = await run.askAnswer({ step: "draft", role: "author", model: author, task });
  if (draft === undefined) throw tooFewAnswers(1, 0);
  const critique = await run.askVerdict({
    step: "critique",
    role: "critic",
    model: critic,
    task: "Criticise the draft answer of a colleague. Name each error, gap and unsupported claim, quote the words, and say how to mend it. Do not rewrite the answer.",
    sections: [{ title: "Draft", text: draft }],
  });
  if (critique === undefined) {
    run.warnings.push(`The critic (${critic}) did not answer; this is the draft.`);
    return { output: draft };
  }
  const revision = await run.askAnswer({
    step: "revision",
    role: "author",
    model: author,
    task: "Revise your draft by the critique. Follow what is right in it, and leave what is not. Give the revised answer alone.",
    sections: [
      { title: "Draft", text: draft },
      { title: "Critique", text: critique },
    ],
  });
  if (revision === undefined) run.warnings.push("The revision failed; this is the draft.");
  return { output: revision ?? draft };
}
