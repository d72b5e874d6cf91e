import { expect } from "chai";
import { measureCoverage } from "../../src/rag/coverage.ts";

const bleeding = "Bleeding: fill the system to 1.5 bar, then open the valve of the pump until no air comes.";
const noise = "A new pump may be louder for 48 hours.";

describe("the coverage of a question", () => {
  it("is the share of its words that a passage has, in any form", () => {
    const { each, best } = measureCoverage("When are the valves of pumps bled?", [bleeding, noise]);
    expect(each[0]).to.be.greaterThan(each[1] ?? 1);
    expect(best).to.be.within(0.3, 0.9); // "bled" is no form of "bleeding" that an index knows
    expect(measureCoverage("Is the valve bleeding?", [bleeding]).best).to.equal(1);
  });

  it("is low for a question of which the passages have common words alone", () => {
    const holders = new Map(Object.entries({ pump: 30, new: 10, zeppelin: 0, insur: 0 }));
    const { best } = measureCoverage("How is a new zeppelin pump insured?", [noise, bleeding], holders);
    expect(best).to.be.lessThan(0.35);
  });

  it("is that of the best passage and of the first two together, and of no others", () => {
    const passages = ["alpha station", "beta station", "gamma station", "alpha beta gamma"];
    expect(measureCoverage("alpha beta gamma", passages).best).to.be.closeTo(5 / 6, 0.05);
    expect(measureCoverage("alpha beta gamma", passages.slice(0, 3)).best).to.be.closeTo(1 / 2, 0.05);
  });

  it("knows identifiers however their parts are joined", () => {
    const [with04 = 0, with05 = 1] = measureCoverage("What does E-04 mean?", [
      "Fault E 04: no flow.",
      "Fault E05.",
    ]).each;
    expect(with04).to.be.greaterThan(0.75);
    expect(with05).to.be.lessThan(0.5);
  });

  it("compares scripts without spaces by pairs of letters", () => {
    const [has = 0, hasNot = 1] = measureCoverage("会議室の予約", [
      "会議室の予約は受付で。",
      "駐車場は地下です。",
    ]).each;
    expect(has).to.equal(1);
    expect(hasNot).to.equal(0);
  });

  it("is 0 where nothing was found or asked", () => {
    expect(measureCoverage("pump", [])).to.deep.equal({ each: [], best: 0 });
    expect(measureCoverage("?!", ["a pump"])).to.deep.equal({ each: [0], best: 0 });
  });
});
