import { expect } from "chai";
import { runConsensus } from "../../src/composite/patterns/consensus.ts";
import { runEnsemble } from "../../src/composite/patterns/ensemble.ts";
import { openPatternRun, type Pattern } from "../../src/composite/patterns/pattern.ts";
import { profiles } from "../../src/composite/profiles.ts";

const QUESTIONS = 500;
const MEMBERS = 5;
const RIGHT = 0.6;
/** A member that errs gives one of these wrong answers, each as likely. */
const WRONG_ANSWERS = 4;
/** Standard errors that a measured share may lie from the predicted one: one run in 370 lies further off by chance. */
const SIGMAS = 3;

/** Numbers from 0 up to 1, the same ones in each run (mulberry32). */
function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** How often the first answer among those with the most votes is the right one, 0, over all that members can say. */
function pluralityShare(): number {
  let share = 0;
  for (let code = 0; code < (WRONG_ANSWERS + 1) ** MEMBERS; code += 1) {
    const said = Array.from(
      { length: MEMBERS },
      (_, index) => Math.floor(code / (WRONG_ANSWERS + 1) ** index) % (WRONG_ANSWERS + 1),
    );
    const probability = said.reduce((p, answer) => p * (answer === 0 ? RIGHT : (1 - RIGHT) / WRONG_ANSWERS), 1);
    const votes = (answer: number) => said.filter((one) => one === answer).length;
    const most = Math.max(...said.map(votes));
    if (said.find((answer) => votes(answer) === most) === 0) share += probability;
  }
  return share;
}

/** Members answer anew in each discussion; a round in which all agree is the last, the third one is it anyway. */
function consensusShare(): number {
  const allRight = RIGHT ** MEMBERS;
  const allWrong = WRONG_ANSWERS * ((1 - RIGHT) / WRONG_ANSWERS) ** MEMBERS;
  const goesOn = 1 - allRight - allWrong;
  return allRight + goesOn * (allRight + goesOn * pluralityShare());
}

async function measure(pattern: Pattern, toText: (answer: number) => string, seed: number) {
  const random = makeRandom(seed);
  const answers: number[] = [];
  let right = 0;
  for (let question = 0; question < QUESTIONS; question += 1) {
    const run = openPatternRun({
      input: `Question ${question}`,
      profile: profiles.coding,
      models: Array.from({ length: MEMBERS }, (_, index) => `model-${index}`),
      judge: "model-0",
      complete: async () => {
        const answer = random() < RIGHT ? 0 : 1 + Math.floor(random() * WRONG_ANSWERS);
        answers.push(answer);
        return toText(answer);
      },
    });
    const { output } = await pattern(run);
    if (/\b1000\b/.test(output)) right += 1;
  }
  const ofOne = answers.filter((answer) => answer === 0).length / answers.length;
  return { share: right / QUESTIONS, ofOne };
}

const near = (expected: number) => SIGMAS * Math.sqrt((expected * (1 - expected)) / QUESTIONS);

describe("members that are right with probability 0.6, on their own", () => {
  const cases: [string, Pattern, (answer: number) => string, number][] = [
    ["ensemble", runEnsemble, (answer) => `I counted twice.\nAnswer: ${1_000 + answer}`, pluralityShare()],
    [
      "consensus",
      runConsensus,
      (answer) => JSON.stringify({ reasoning: "I counted.", answer: String(1_000 + answer), confidence: 0.8 }),
      consensusShare(),
    ],
  ];
  for (const [name, pattern, toText, predicted] of cases) {
    it(`are right as ${name} of five as often as voting predicts (${predicted.toFixed(3)})`, async () => {
      for (const seed of [1, 2, 3]) {
        const { share, ofOne } = await measure(pattern, toText, seed);
        expect(ofOne).to.be.closeTo(RIGHT, near(RIGHT));
        expect(share).to.be.closeTo(predicted, near(predicted));
        expect(share - ofOne).to.be.above(0.1);
      }
    });
  }
});
