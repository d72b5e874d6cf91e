import { expect } from "chai";
import { measureCoverage } from "../../src/rag/coverage.ts";

const bleeding = "Bleeding: fill the system to 1.5 bar, then open the valve of the pump until no air comes.";
const noise = "A new pump may be louder for 48 hours.";

describe("the coverage of a question", () => {
  it("is the share of its words that a passage has, in any form", () => {
    const { each, together } = measureCoverage("When are the valves of pumps bled?", [bleeding, noise]);
    expect(each[0]).to.be.greaterThan(each[1] ?? 1);
    expect(together).to.be.within(0.3, 0.9); // "bled" is no form of "bleeding" that an index knows
    expect(measureCoverage("Is the valve bleeding?", [bleeding]).together).to.equal(1);
  });

  it("is low for a question of which the passages have common words alone", () => {
    const holders = new Map(Object.entries({ pump: 30, new: 10, zeppelin: 0, insur: 0 }));
    const { together } = measureCoverage("How is a new zeppelin pump insured?", [noise, bleeding], holders);
    expect(together).to.be.lessThan(0.35);
  });

  it("unites what the best passages have, and no others", () => {
    const passages = ["alpha station", "beta station", "gamma station", "delta station"];
    expect(measureCoverage("alpha beta gamma", passages).together).to.equal(1);
    expect(measureCoverage("alpha beta delta", passages).together).to.be.lessThan(0.7);
  });

  it("knows identifiers however their parts are joined", () => {
    const [with04 = 0, with05 = 1] = measureCoverage("What does E-04 mean?", [
      "Fault E 04: no flow.",
      "Fault E05.",
    ]).each;
    expect(with04).to.be.greaterThan(0.8);
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
    expect(measureCoverage("pump", [])).to.deep.equal({ each: [], together: 0 });
    expect(measureCoverage("?!", ["a pump"])).to.deep.equal({ each: [0], together: 0 });
  });
});
