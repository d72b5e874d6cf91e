import type { Expert } from "../profiles.ts";
import { readJson } from "./answers.ts";
import { askMembers, tooFewAnswers } from "./members.ts";
import type { PatternOutcome, PatternRun } from "./pattern.ts";
import { askAnswer, askVerdict } from "./prompts.ts";

/** Experts that the gate picks. */
const PICKED = 2;

type Seat = { expert: Expert; model: string; weight: number };

/**
 * Routing among experts, each a role with a model (not the layer of a neural network that has the name): a gate picks two of
 * the profile's experts and weighs them, they answer in parallel, and an aggregator makes one answer, as in
 * Mixture-of-Agents (Wang et al. 2024, arXiv:2406.04692).
 *
 * Calls: 1 gate, 2 experts in parallel, 1 aggregator. When the gate fails or names nobody, all experts answer, with equal
 * weight. One answer left is returned as it is; without an aggregation the answer of the heaviest expert is.
 */
export async function runMixtureOfExperts(run: PatternRun): Promise<PatternOutcome> {
  const { profile, models, judge, complete } = run;
  const warnings: string[] = [];
  const seats = profile.experts.map((expert, index) => ({
    expert,
    model: models[index % models.length] ?? judge,
    weight: 1 / profile.experts.length,
  }));
  const picked = await pick(run, seats, warnings);
  const asks = picked.map(({ expert, model }, index) => ({
    member: index + 1,
    ask: askAnswer(run, {
      step: `expert-${expert.id}`,
      role: "expert",
      model,
      task: `${expert.prompt} Answer the question from that point of view.`,
    }),
  }));
  const voices = await askMembers(complete, asks, warnings);
  const answers = voices
    .flatMap(({ member, text }) => {
      const seat = picked[member - 1];
      return seat ? [{ ...seat, text }] : [];
    })
    .sort((a, b) => b.weight - a.weight);
  const [heaviest] = answers;
  if (!heaviest) throw tooFewAnswers(1, 0);
  if (answers.length === 1) {
    warnings.push(`Only one expert (${heaviest.expert.id}) answered.`);
    return { output: heaviest.text, warnings };
  }
  const output = await complete(
    askAnswer(run, {
      step: "aggregation",
      role: "aggregator",
      model: judge,
      task: "Synthesise one answer from those of the experts. Do not copy: weigh each claim, give the experts the weights that are told, distrust what only one says without a reason, and settle contradictions. Give the answer alone.",
      sections: answers.map(({ expert, weight, text }) => ({
        title: `${expert.name}, weight ${weight.toFixed(2)}`,
        text,
      })),
    }),
  );
  if (output === undefined) warnings.push("The aggregation failed; this is the answer of the heaviest expert.");
  return { output: output ?? heaviest.text, warnings };
}

async function pick(run: PatternRun, seats: readonly Seat[], warnings: string[]): Promise<Seat[]> {
  const list = seats.map(({ expert }) => `${expert.id}: ${expert.about}`).join("\n");
  const verdict = await run.complete(
    askVerdict(run, {
      step: "gate",
      role: "gate",
      model: run.judge,
      task: `Pick the ${PICKED} experts who can best answer the question, and weigh them (the weights sum to 1). The experts are:\n${list}\nAnswer with a JSON object alone: {"experts": [{"id": "...", "weight": 0.6}, {"id": "...", "weight": 0.4}]}.`,
    }),
  );
  const picked = verdict === undefined ? [] : readPicked(verdict, seats);
  if (picked.length > 0) return picked;
  warnings.push("The gate did not pick; all experts were asked.");
  return [...seats];
}

function readPicked(verdict: string, seats: readonly Seat[]): Seat[] {
  const named = readJson(verdict)?.experts;
  const picks = (Array.isArray(named) ? named : []).flatMap((one: unknown) => {
    const { id, weight } =
      typeof one === "object" && one !== null ? { id: "", weight: 0, ...one } : { id: one, weight: 1 };
    const seat = seats.find(({ expert }) => expert.id === id);
    return seat ? [{ ...seat, weight: Math.max(0, Number(weight) || 0) }] : [];
  });
  const unique = [...new Map(picks.map((one) => [one.expert.id, one])).values()]
    .sort((a, b) => b.weight - a.weight)
    .slice(0, PICKED);
  const sum = unique.reduce((total, { weight }) => total + weight, 0);
  return unique.map((one) => ({ ...one, weight: sum > 0 ? one.weight / sum : 1 / unique.length }));
}
