import { expect } from "chai";
import fifty from "../../scripts/manuals/fifty-questions.json" with { type: "json" };
import { manuals, placeOf } from "../../scripts/manuals/questions.ts";
import { makeScriptedJudge, scoreOf } from "../../scripts/manuals/scripted-judge.ts";

const wordsOf = (text: string) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
const kinds = ["fact", "option", "procedure", "rare word", "paraphrase"];
const MAX_SHARED_WORDS = 3;
const hit = (content: string) => ({ content, documentId: "d", score: 1, title: "t" });

describe("the questions about manuals", () => {
  it("are fifty, one of each kind about each of the ten manuals", () => {
    const byManual = Object.groupBy(fifty, ({ manual }) => manual);
    const names = manuals.map(({ path }) => path.replace(/^.*\/|\.gz$/g, ""));
    expect(Object.keys(byManual).sort()).to.deep.equal(names.sort());
    for (const ofManual of Object.values(byManual)) expect(ofManual?.map(({ kind }) => kind)).to.deep.equal(kinds);
    expect(new Set(fifty.map(({ ask }) => ask))).to.have.lengthOf(50);
  });

  it("are not worded as the passages that answer, nor do the judge's ideas quote those", () => {
    for (const { ask, answers, judge } of fifty) {
      const asked = wordsOf(ask);
      for (const answer of answers.map((text) => ` ${wordsOf(text).join(" ")} `)) {
        const runs = asked.map((_, at) => asked.slice(at, at + MAX_SHARED_WORDS + 1));
        const copied = runs.filter((run) => run.length > MAX_SHARED_WORDS && answer.includes(` ${run.join(" ")} `));
        expect(copied, ask).to.deep.equal([]);
      }
      const longest = Math.max(...judge.flatMap((idea) => idea.split("|").map((words) => wordsOf(words).length)));
      expect(longest, ask).to.be.at.most(MAX_SHARED_WORDS);
    }
  });

  it("are answered by a chunk that holds an answer, whatever its lines are", () => {
    const hits = [hit("no"), hit("the value is\nset to 27")];
    expect(placeOf(hits, { answers: ["other", "value is set to"] })).to.equal(2);
    expect(placeOf(hits, { answers: ["other"] })).to.equal(0);
  });
});

describe("the scripted judge of manuals", () => {
  const ideas = ["lock|latch", "second"];

  it("prefers passages with more of the ideas, and those where they are nearer", () => {
    const texts = [
      "The door.",
      "A clock ticks.",
      "A latch.",
      `A LOCK ${"x ".repeat(500)} seconds`,
      "locked for a second",
    ];
    const scores = texts.map((text) => scoreOf(text, ideas));
    expect(scores).to.deep.equal(scores.toSorted((a, b) => a - b));
    expect(scores[1]).to.equal(0);
    expect(new Set(scores).size).to.equal(4);
    expect(scores[4]).to.be.within(0.9, 1);
  });

  it("ranks by the ideas of the question, and answers no other question", () => {
    const judge = makeScriptedJudge(new Map([["How long?", ideas]]));
    const { rawBody = "" } = judge({ model: "judge", query: "How long?", documents: ["A door.", "A lock."] });
    const { results } = JSON.parse(rawBody) as { results: { index: number; relevance_score: number }[] };
    expect(results.map(({ index }) => index)).to.deep.equal([0, 1]);
    expect(results[1]?.relevance_score).to.be.above(results[0]?.relevance_score ?? 1);
    expect(judge({ model: "judge", query: "Why?", documents: ["A lock."] })).to.deep.include({ status: 400 });
  });
});
