import { readJson } from "./answers.ts";
import { type PatternOutcome, type PatternRun, tooFewAnswers } from "./pattern.ts";

/** Experts that the gate picks. */
const PICKED = 2;

type Seat = { id: string; prompt: string; about: string; model: string; weight: number };

/**
 * Routing among experts, each a role with a model (not the layer of a neural network that has the name): a gate picks two of
 * the profile's experts and weighs them, they answer in parallel, and an aggregator makes one answer, as in
 * Mixture-of-Agents (Wang et al. 2024, arXiv:2406.04692).
 *
 * Calls: 1 gate, 2 experts in parallel, 1 aggregator. When the gate fails or names no expert, all answer, with equal
 * weight. One answer left is returned as it is; without an aggregation the answer of the heaviest expert is.
 */
export async function runMixtureOfExperts(run: PatternRun): Promise<PatternOutcome> {
  const { profile, models, judge } = run;
  const experts = Object.entries(profile.experts);
  const seats = experts.map(([id, [prompt, about]], index) => {
    const model = models[index % models.length] ?? judge;
    return { id, prompt, about, model, weight: 1 / experts.length };
  });
  const picked = await pick(run, seats);
  const members = picked.map((seat, index) => ({ ...seat, member: index + 1 }));
  const voices = await run.askMembers(members, ({ id, prompt }) => ({
    step: `expert-${id}`,
    role: "expert",
    task: `${prompt} Answer the question from that point of view.`,
  }));
  const answers = voices
    .flatMap(({ member, text }) => members.filter((seat) => seat.member === member).map((seat) => ({ ...seat, text })))
    .sort((a, b) => b.weight - a.weight);
  const [heaviest] = answers;
  if (!heaviest) throw tooFewAnswers(1, 0);
  if (answers.length === 1) {
    run.warnings.push(`Only one expert (${heaviest.id}) answered.`);
    return { output: heaviest.text };
  }
  const output = await run.askAnswer({
    step: "aggregation",
    role: "aggregator",
    model: judge,
    task: "Synthesise one answer from those of the experts. Do not copy: weigh each claim, give the experts the weights that are stated, distrust what only one says without a reason, and settle contradictions. Give the answer alone.",
    sections: answers.map(({ id, weight, text }) => ({ title: `${nameOf(id)}, weight ${weight.toFixed(2)}`, text })),
  });
  if (output === undefined) run.warnings.push("The aggregation failed; this is the answer of the heaviest expert.");
  return { output: output ?? heaviest.text };
}

/** "public-health" as "Public health". */
const nameOf = (id: string) => id.charAt(0).toUpperCase() + id.slice(1).replaceAll("-", " ");

async function pick(run: PatternRun, seats: readonly Seat[]): Promise<Seat[]> {
  const list = seats.map(({ id, about }) => `${id}: ${about}`).join("\n");
  const verdict = await run.askVerdict({
    step: "gate",
    role: "gate",
    model: run.judge,
    task: `Pick the ${PICKED} experts who can best answer the question, and weigh them (the weights sum to 1). The experts are:\n${list}\nAnswer with a JSON object alone: {"experts": [{"id": "...", "weight": 0.6}, {"id": "...", "weight": 0.4}]}.`,
  });
  const picked = verdict === undefined ? [] : readPicked(verdict, seats);
  if (picked.length > 0) return picked;
  run.warnings.push("The gate did not pick; all experts were asked.");
  return [...seats];
}

function readPicked(verdict: string, seats: readonly Seat[]): Seat[] {
  const named = readJson(verdict)?.experts;
  const picks = (Array.isArray(named) ? named : []).flatMap((one: unknown) => {
    const { id, weight } =
      typeof one === "object" && one !== null ? { id: "", weight: 0, ...one } : { id: one, weight: 1 };
    const seat = seats.find((one) => one.id === id);
    return seat ? [{ ...seat, weight: Math.max(0, Number(weight) || 0) }] : [];
  });
  const unique = [...new Map(picks.map((one) => [one.id, one])).values()]
    .sort((a, b) => b.weight - a.weight)
    .slice(0, PICKED);
  const sum = unique.reduce((total, { weight }) => total + weight, 0);
  return unique.map((one) => ({ ...one, weight: sum > 0 ? one.weight / sum : 1 / unique.length }));
}
