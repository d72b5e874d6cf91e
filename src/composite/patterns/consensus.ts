import { asAnswer, discreteAnswer, readJson } from "./answers.ts";
import { type PatternOutcome, type PatternRun, QUORUM, type Section, tooFewAnswers } from "./pattern.ts";
import { type Group, groupByAnswer, toGroups, toVerdict, type Voice } from "./vote.ts";

/** Rounds of discussion after the first answers. */
const MAX_DISCUSSIONS = 2;
/** The confidence of a member that states none. */
const UNSTATED = 0.7;

/** An answer with its reason; `text` is the answer alone. */
type Opinion = Voice & { reason: string; confidence: number };

/**
 * ReConcile (Chen et al. 2023, arXiv:2309.13007): models answer in parallel with a reason and a confidence. While they do not
 * agree, for two rounds at most, each sees the answers in groups with their reasons and confidences, and answers again. A
 * vote ends it, weighted by recalibrated confidence. Free texts are put into groups by a judge first.
 *
 * Calls: n members, and n more in each discussion (0 to 2), those of a round in parallel; for free texts that differ, 1 more of
 * the judge in each round. A member that fails is left out while two remain; when fewer answer in a discussion, the round
 * before counts.
 */
export async function runConsensus(run: PatternRun): Promise<PatternOutcome> {
  let opinions = await askRound(run, 0);
  if (opinions.length < QUORUM) throw tooFewAnswers(QUORUM, opinions.length);
  let groups = await toOpinionGroups(run, 0, opinions);
  for (let round = 1; round <= MAX_DISCUSSIONS && groups.length > 1; round += 1) {
    const next = await askRound(run, round, groups);
    if (next.length < QUORUM) {
      run.warnings.push(`Fewer than ${QUORUM} members answered in discussion ${round}; the round before counts.`);
      break;
    }
    opinions = next;
    groups = await toOpinionGroups(run, round, opinions);
  }
  const [surest] = (groups[0]?.voices ?? []).toSorted((a, b) => b.weight - a.weight);
  return { output: surest?.text ?? "", ...toVerdict(groups) };
}

async function askRound(run: PatternRun, round: number, groups?: readonly Group<Opinion>[]): Promise<Opinion[]> {
  const members = groups?.flatMap(({ voices }) => voices).toSorted((a, b) => a.member - b.member) ?? run.members;
  const form =
    'Answer with a JSON object alone: {"reasoning": "your reasons, step by step", "answer": "the answer: short where the question has one definite answer, else the full text", "confidence": 0.0 to 1.0}.';
  const voices = await run.askMembers(members, ({ member }) => ({
    step: round === 0 ? `member-${member}` : `discussion-${round}/member-${member}`,
    role: "member",
    task:
      groups === undefined
        ? `Answer the question. ${form}`
        : `Several models answered the question, and they do not agree. Weigh their reasons, and answer again. ${form}`,
    sections: (groups ?? []).map(toSection),
  }));
  return voices.map(toOpinion);
}

function toSection({ voices }: Group<Opinion>): Section {
  const models = voices.length === 1 ? "1 model answers" : `${voices.length} models answer`;
  const reasons = voices.map(({ reason, confidence }) => `- (confidence ${confidence}) ${reason}`).join("\n");
  return { title: models, text: `${voices[0]?.text ?? ""}\nbecause:\n${reasons}` };
}

function toOpinion(voice: Voice): Opinion {
  const { answer, reasoning, confidence } = readJson(voice.text) ?? {};
  const sure = readConfidence(confidence ?? /confidence\W{0,4}(\d+(?:\.\d+)?\s?%?)/i.exec(voice.text)?.[1]);
  return {
    ...voice,
    text: asAnswer(answer) ?? voice.text,
    reason: typeof reasoning === "string" ? reasoning : voice.text,
    confidence: sure,
    weight: recalibrate(sure),
  };
}

function readConfidence(stated: unknown): number {
  const text = typeof stated === "number" || typeof stated === "string" ? String(stated).trim() : "";
  const number = Number(text.replace("%", ""));
  if (text === "" || !Number.isFinite(number)) return UNSTATED;
  const share = text.endsWith("%") || number > 1 ? number / 100 : number;
  return Math.min(1, Math.max(0, share));
}

/** The paper's steps: models are more often wrong than their confidence suggests. */
function recalibrate(confidence: number): number {
  if (confidence >= 1) return 1;
  if (confidence >= 0.9) return 0.8;
  if (confidence >= 0.8) return 0.5;
  return confidence > 0.6 ? 0.3 : 0.1;
}

/** Opinions in groups of equal ones, by their discrete answers, else as a judge sees them. */
async function toOpinionGroups(
  run: PatternRun,
  round: number,
  opinions: readonly Opinion[],
): Promise<Group<Opinion>[]> {
  const groups = groupByAnswer(opinions);
  if (groups) return groups;
  const verdict = await run.askVerdict({
    step: `clusters-${round}`,
    role: "judge",
    model: run.judge,
    task: 'Put answers that say the same in substance into one group, whatever their wording. Answer with a JSON object alone, naming answers by number: {"groups": [[1, 3], [2]]}.',
    sections: opinions.map(({ text }, index) => ({ title: `Answer ${index + 1}`, text })),
  });
  const clusterOf = readClusters(verdict, opinions.length);
  if (clusterOf === undefined)
    run.warnings.push(`The answers of round ${round} could not be grouped; each counts alone.`);
  return toGroups(opinions, ({ text }, index) => clusterOf?.get(index + 1) ?? discreteAnswer(text) ?? `#${index}`);
}

/** Which group each answer is in; undefined when the judge's verdict cannot be read. */
function readClusters(verdict: string | undefined, count: number): Map<number, string> | undefined {
  const groups = verdict === undefined ? undefined : readJson(verdict)?.groups;
  if (!Array.isArray(groups)) return undefined;
  const clusterOf = new Map<number, string>();
  for (const [index, members] of groups.entries()) {
    for (const member of Array.isArray(members) ? members : []) {
      const number = Number(member);
      if (Number.isInteger(number) && number >= 1 && number <= count) clusterOf.set(number, `group ${index + 1}`);
    }
  }
  return clusterOf.size === 0 ? undefined : clusterOf;
}
