import { type PatternOutcome, type PatternRun, tooFewAnswers } from "./pattern.ts";

/**
 * Zero-shot chain of thought (Kojima et al. 2022, arXiv:2205.11916): one call elicits numbered reasoning, a second one
 * extracts the answer from it. The reasoning stays in the trace.
 *
 * Calls: 2, one after the other, of the first model. When the second fails, the last paragraph of the reasoning is the answer.
 */
export async function runChainOfThought(run: PatternRun): Promise<PatternOutcome> {
  const model = run.models[0] ?? run.judge;
  const reasoning = await run.askAnswer({
    step: "reasoning",
    role: "reasoner",
    model,
    task: "Think the question through step by step. Number the steps, and check each before you go on. End with a paragraph that answers.",
  });
  if (reasoning === undefined) throw tooFewAnswers(1, 0);
  const answer = await run.askAnswer({
    step: "extraction",
    role: "extractor",
    model,
    task: "Give the answer that the reasoning leads to, complete and on its own, without the steps.",
    sections: [{ title: "Reasoning", text: reasoning }],
  });
  if (answer !== undefined) return { output: answer };
  run.warnings.push("The answer could not be extracted; it is the end of the reasoning.");
  const paragraphs = reasoning.trim().split(/\n\s*\n/);
  return { output: paragraphs.at(-1) ?? reasoning };
}
