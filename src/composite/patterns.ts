import { runChainOfThought } from "./patterns/chain-of-thought.ts";
import { runConsensus } from "./patterns/consensus.ts";
import { runCritique } from "./patterns/critique.ts";
import { runDebate } from "./patterns/debate.ts";
import { runEnsemble } from "./patterns/ensemble.ts";
import { runMixtureOfExperts } from "./patterns/mixture-of-experts.ts";
import type { Pattern } from "./patterns/pattern.ts";
import { runSelfReflection } from "./patterns/self-reflection.ts";

/** Members of one run at most. */
export const MAX_MODELS = 8;

type PatternEntry = {
  run: Pattern;
  name: string;
  description: string;
  /** The least models that a caller may name, where it names some. */
  minModels: number;
  /** Models that are asked when the caller names none. */
  defaultModels: number;
  /** Model calls of a run with the default models, as far as they can be foreseen: the most that is usual. */
  typicalSteps: number;
};

const entries = {
  consensus: {
    run: runConsensus,
    name: "Consensus",
    description:
      "Models answer with reasons and confidence, discuss while they disagree (two rounds at most), and vote by confidence.",
    minModels: 2,
    defaultModels: 3,
    typicalSteps: 9,
  },
  critique: {
    run: runCritique,
    name: "Critique",
    description: "One model drafts, another criticises the draft by the profile's criteria, the first revises it.",
    minModels: 2,
    defaultModels: 2,
    typicalSteps: 3,
  },
  "chain-of-thought": {
    run: runChainOfThought,
    name: "Chain of thought",
    description: "One model reasons step by step; a second call extracts the answer. The reasoning stays in the trace.",
    minModels: 1,
    defaultModels: 1,
    typicalSteps: 2,
  },
  "mixture-of-experts": {
    run: runMixtureOfExperts,
    name: "Mixture of experts",
    description: "A gate picks two of the profile's experts, they answer in parallel, an aggregator synthesises.",
    minModels: 2,
    defaultModels: 3,
    typicalSteps: 4,
  },
  debate: {
    run: runDebate,
    name: "Debate",
    description: "Agents answer, see the answers of all the others, and answer again; the majority or a judge decides.",
    minModels: 2,
    defaultModels: 3,
    typicalSteps: 7,
  },
  ensemble: {
    run: runEnsemble,
    name: "Ensemble",
    description:
      "Models answer in parallel; definite answers are voted on, texts are ranked in pairs and the best fused.",
    minModels: 2,
    defaultModels: 3,
    typicalSteps: 8,
  },
  "self-reflection": {
    run: runSelfReflection,
    name: "Self-reflection",
    description: "One model drafts, criticises and refines its own answer, three times at most; the best draft wins.",
    minModels: 1,
    defaultModels: 1,
    typicalSteps: 7,
  },
} satisfies Record<string, PatternEntry>;
export type PatternId = keyof typeof entries;

/** The patterns, in the order of the documentation. */
export const patterns: Readonly<Record<PatternId, PatternEntry>> = entries;
export const patternIds = Object.keys(entries) as [PatternId, ...PatternId[]]; // the names of the object above
