import { discreteAnswer, normalise } from "./answers.ts";

/** An answer of a member of a group. */
export type Voice = {
  /** The member's place, from 1. */
  member: number;
  model: string;
  text: string;
  /** What it counts in a vote. */
  weight: number;
};

/** Voices that agree. */
export type Group<V extends Voice = Voice> = { key: string; voices: V[]; weight: number };

/** An answer that lost, and the models that gave it. */
export type Dissent = { models: string[]; answer: string };

/** Answers are cut to this many characters where they are shown as dissent. */
const MAX_DISSENT = 2_000;

/**
 * Groups voices by their discrete answers, or by their whole text when those are equal. Undefined when most answers are
 * prose: then only a judge can group them. A voice without a discrete answer stands alone.
 */
export function groupByAnswer<V extends Voice>(voices: readonly V[]): Group<V>[] | undefined {
  const keys = voices.map(({ text }) => discreteAnswer(text));
  const isDiscrete = keys.filter((key) => key !== undefined).length * 2 > voices.length;
  const texts = new Set(voices.map(({ text }) => normalise(text)));
  if (!isDiscrete && texts.size > 1) return undefined;
  return toGroups(voices, (voice, index) => keys[index] ?? `#${normalise(voice.text)}`);
}

/** Groups voices by a key, the heaviest group first, of equal ones the one whose first member came first. */
export function toGroups<V extends Voice>(
  voices: readonly V[],
  keyOf: (voice: V, index: number) => string,
): Group<V>[] {
  const groups = Map.groupBy(voices, keyOf);
  const weighed = [...groups].map(([key, members]) => {
    return { key, voices: members, weight: members.reduce((sum, { weight }) => sum + weight, 0) };
  });
  return weighed.sort((a, b) => b.weight - a.weight || b.voices.length - a.voices.length);
}

/** The outcome of a vote: the share of voices that agree with the winner, and what the others said. */
export function toVerdict(groups: readonly Group[]): { agreement: number; dissent: Dissent[] } {
  const all = groups.reduce((sum, { voices }) => sum + voices.length, 0);
  const [winner, ...losers] = groups;
  return {
    agreement: all === 0 ? 0 : round((winner?.voices.length ?? 0) / all),
    dissent: losers.map(({ voices }) => ({
      models: voices.map(({ model }) => model),
      answer: (voices[0]?.text ?? "").slice(0, MAX_DISSENT),
    })),
  };
}

/** Agreement of texts that no vote can compare: the mean overlap of the words of each two of them (Jaccard). */
export function wordAgreement(texts: readonly string[]): number {
  const sets = texts.map((text) => new Set(normalise(text).split(" ")));
  const overlaps = sets.flatMap((one, index) => sets.slice(index + 1).map((other) => overlap(one, other)));
  return overlaps.length === 0 ? 1 : round(overlaps.reduce((sum, share) => sum + share, 0) / overlaps.length);
}

function overlap(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  const shared = [...one].filter((word) => other.has(word)).length;
  return shared / Math.max(1, one.size + other.size - shared);
}

const round = (share: number) => Math.round(share * 100) / 100;
