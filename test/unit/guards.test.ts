import { readFileSync } from "node:fs";
import { expect } from "chai";
import { profiles } from "../../src/composite/profiles.ts";
import { inspect } from "../../src/guards/guard.ts";
import { mustBlock, mustPass } from "../support/guard-cases.ts";
import { hostileForms, oddForms } from "../support/guard-odd-forms.ts";
import { hostileTexts } from "../support/hostile-texts.ts";

const guardsOf = (profile: "healthcare" | "financial") => profiles[profile].guards;

const LINEAR_MS = 500;

/** Processor time in ms, which other processes do not lengthen as they do the clock's, for all that the guards look for. */
function cpuTimeOf(text: string): number {
  const before = process.cpuUsage();
  inspect(text, [...new Set([...guardsOf("healthcare"), ...guardsOf("financial")])]);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

describe("guards of the regulated profiles", () => {
  for (const { kind, profile, texts } of [...mustBlock, ...oddForms]) {
    for (const text of texts) {
      it(`${profile} finds the ${kind} in ${JSON.stringify(text)}`, () => {
        const found = inspect(text, guardsOf(profile));
        expect(found.map((finding) => finding.kind)).to.include(kind);
      });
    }
  }
  for (const { profile, texts } of mustPass) {
    for (const text of texts) {
      it(`${profile} lets ${JSON.stringify(text)} through`, () => {
        expect(inspect(text, guardsOf(profile))).to.deep.equal([]);
      });
    }
  }

  it("reports the position of the value in the text as it was sent, and nothing of it", () => {
    const text = "née: 🏥 SSN ２１９-０９-９９９９, card later";
    const [finding] = inspect(text, guardsOf("healthcare"));
    expect(finding).to.have.all.keys("kind", "start", "end");
    expect(text.slice(finding?.start, finding?.end)).to.equal("２１９-０９-９９９９");
  });

  it("reports the position of a value that is written in words", () => {
    const text = "my social is two one nine, oh nine, nine nine nine nine ok";
    const [finding] = inspect(text, guardsOf("healthcare"));
    expect(text.slice(finding?.start, finding?.end)).to.equal("two one nine, oh nine, nine nine nine nine");
  });

  for (const [text, value] of [
    ["née: SSN &#50;19-09-999&#x39;, card later", "&#50;19-09-999&#x39;"],
    [`${"An odd %20 of a text. ".repeat(40)}SSN 219%2D09%2D9999 ${"%20".repeat(90)}`, "219%2D09%2D9999"],
    [`iPhone: ${"no number here, ".repeat(40)}my DoB is 03/12/1985, in aBc`, "03/12/1985"],
    ["SSN 219-O9-9999 of two", "219-O9-9999"],
    ["SsN&#58; 二一九&#45;〇九-九九九九。", "二一九&#45;〇九-九九九九"],
    ["two one nine dash oh nine dash nine nine nine nine.", "two one nine dash oh nine dash nine nine nine nine"],
  ] as const) {
    it(`reports the position of the value in ${JSON.stringify(text.slice(0, 60))}, once`, () => {
      const found = inspect(text, guardsOf("healthcare"));
      expect(found.map(({ start, end }) => text.slice(start, end))).to.deep.equal([value]);
    });
  }

  it("reports a bounded number of positions in a text that is full of them", () => {
    expect(inspect("219-09-9999; ".repeat(5_000), guardsOf("healthcare")).length).to.be.within(1, 100);
  });

  it("reports only the kinds that a profile asks for", () => {
    expect(inspect("DOB 04/07/1981, MRN 448211, card 4242424242424242", [])).to.deep.equal([]);
    expect(inspect("card 4242424242424242", guardsOf("healthcare"))).to.deep.equal([]);
    expect(inspect("DOB 04/07/1981, MRN 448211", guardsOf("financial"))).to.deep.equal([]);
  });

  // A megabyte takes 200 ms on a quiet machine; what is not linear takes ten times as long and more.
  for (const [name, seeds] of Object.entries({ "hostile text": hostileTexts, "row of odd forms": hostileForms })) {
    it(`reads any ${name} in linear time`, () => {
      for (const seed of seeds) {
        const text = seed.repeat(Math.ceil((64 << 10) / Buffer.byteLength(seed)));
        let best = Number.POSITIVE_INFINITY;
        for (let tries = 0; tries < 3 && best >= LINEAR_MS; tries += 1) best = Math.min(best, cpuTimeOf(text));
        expect(best, JSON.stringify(seed)).to.be.below(LINEAR_MS);
      }
    }).timeout(120_000);
  }

  it("finds all values of the public collection, and almost nothing else", () => {
    const path = new URL("../support/data/pii-public.jsonl", import.meta.url);
    const rows = readFileSync(path, "utf8").trim().split("\n").map(readRow);
    expect(rows).to.have.length(172);
    const isStopped = (row: Row) => inspect(row.text, guardsOf(row.profile)).length > 0;
    const [held, clean] = [rows.filter((row) => row.should_block), rows.filter((row) => !row.should_block)];
    expect(held.filter((row) => !isStopped(row)).map(({ text }) => text)).to.deep.equal([]);
    expect(clean.filter(isStopped).length / clean.length).to.be.at.most(0.03);
  });
});

type Row = { text: string; profile: "healthcare" | "financial"; should_block: boolean };

const readRow = (line: string): Row => JSON.parse(line);
