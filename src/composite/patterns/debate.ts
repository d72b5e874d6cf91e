import { type PatternOutcome, type PatternRun, QUORUM, tooFewAnswers } from "./pattern.ts";
import { groupByAnswer, toVerdict, type Voice, wordAgreement } from "./vote.ts";

const ROUNDS = 2;

/**
 * Multi-agent debate (Du et al. 2023, arXiv:2305.14325): the agents answer on their own; in each further round each gets the
 * last answers of all the others and the question again. The majority of the last round wins; where answers are free texts, or
 * no answer has more voices than every other, a judge writes the answer from the transcript.
 *
 * Calls: n agents in 2 rounds, those of a round in parallel, and 1 of the judge where there is no majority. An agent that
 * fails is left out from then on while two remain; when fewer answer in the second round, the first one counts.
 */
export async function runDebate(run: PatternRun): Promise<PatternOutcome> {
  const rounds: Voice[][] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    const voices = await askRound(run, round, rounds.at(-1));
    if (voices.length >= QUORUM) rounds.push(voices);
    else if (rounds.length === 0) throw tooFewAnswers(QUORUM, voices.length);
    else {
      run.warnings.push(
        `Fewer than ${QUORUM} agents answered in round ${round}; the answers of the round before count.`,
      );
      break;
    }
  }
  const voices = rounds.at(-1) ?? [];
  const groups = groupByAnswer(voices);
  const [first, second] = groups ?? [];
  if (groups && first && first.weight > (second?.weight ?? 0)) {
    return { output: first.voices[0]?.text ?? "", ...toVerdict(groups) };
  }
  const agreement = groups ? toVerdict(groups).agreement : wordAgreement(voices.map(({ text }) => text));
  const judged = await run.askAnswer({
    step: "judge",
    role: "judge",
    model: run.judge,
    task: "You are the judge of a debate. Weigh the arguments of the transcript and write the answer to the question: what the agents agree on, and where they do not, the side that is better argued. Give the answer alone.",
    sections: rounds.flatMap((answers, index) =>
      answers.map(({ member, text }) => ({ title: `Round ${index + 1}, agent ${member}`, text })),
    ),
  });
  if (judged === undefined) run.warnings.push("The judge did not answer; this is the last answer of the first agent.");
  const dissent = groups ? { dissent: toVerdict(groups).dissent } : {};
  return { output: judged ?? voices[0]?.text ?? "", agreement, ...dissent };
}

function askRound(run: PatternRun, round: number, last?: readonly Voice[]): Promise<Voice[]> {
  const definite = 'If it has one definite answer, end with a line "Answer: " and that answer alone.';
  return run.askMembers(last ?? run.members, ({ member }) => ({
    step: `round-${round}/agent-${member}`,
    role: "agent",
    task:
      last === undefined
        ? `Answer the question and give your reasons. ${definite}`
        : `These are your last answer and those of the other agents. Use their reasoning as advice: keep what is right, correct what is wrong, and answer the question again. ${definite}`,
    sections: (last ?? [])
      .toSorted((a, b) => Number(b.member === member) - Number(a.member === member))
      .map((voice) => ({
        title: voice.member === member ? "Your last answer" : `Agent ${voice.member}`,
        text: voice.text,
      })),
  }));
}
