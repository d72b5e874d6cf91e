import { expect } from "chai";
import { findValues, guardKinds } from "../../src/guards/guard.ts";
import { readAtOnce, readTexts, readUntil } from "../../src/guards/read-texts.ts";
import { mustBlock } from "../support/guard-cases.ts";
import { labelled } from "../support/guard-new-kinds.ts";

const kinds = guardKinds;
const valued = [
  ...mustBlock.flatMap(({ texts }) => texts),
  ...Object.values(labelled).flatMap((all) => all.map(([text]) => text)),
];
const filler = "The pump is bled when it is first put into operation, and after every refill of the system.\n";
const key = `-----BEGIN RSA PRIVATE KEY-----\n${"MIIEpAIBAAKCAQEA7xk2b9\n".repeat(400)}-----END RSA PRIVATE KEY-----`;
const token = `eyJhbGciOiJIUzI1NiJ9.eyJ${"x1Y2".repeat(900)}.${"sIg9".repeat(60)}`;
const spansOf = (text: string) => readAtOnce([{ text, kinds }])[0]?.map(({ start, end }) => text.slice(start, end));

describe("a long text that guards read in pieces", () => {
  for (const shift of [0, 7, 4_321, 7_600, 7_990]) {
    it(`shows every value that it shows when it is read as a whole, ${shift} characters further on`, () => {
      const text = `${filler.repeat(200).slice(0, shift)}\n${valued.map((one) => `${one}\n\n${filler.repeat(3)}`).join("")}`;
      const whole = findValues(text, kinds).map(({ start, end }) => text.slice(start, end));
      expect(text.length).to.be.above(50_000);
      expect(spansOf(text)).to.deep.equal(whole);
    });
  }

  it("shows a value of every length at every place", () => {
    for (const value of ["219-09-9999", key, token]) {
      for (let at = 6_000; at < 9_000; at += 137) {
        const before = filler.repeat(100).slice(0, at);
        const text = `${before} ${value} ${filler.repeat(200)}`;
        const [found] = readAtOnce([{ text, kinds: ["ssn", "secret"] }]);
        expect(found, `${value.slice(0, 12)} at ${at}`).to.deep.include({
          kind: value.startsWith("219") ? "ssn" : "secret",
          start: at + 1,
          end: at + 1 + value.length,
        });
      }
    }
  });

  it("shows what base64 hides, whose four characters a piece may cut", () => {
    for (let lead = 0; lead < 4; lead += 1) {
      const hidden = Buffer.from(
        `${filler.repeat(150)}${"x".repeat(lead)} SSN 219-09-9999, and so on. ${filler.repeat(150)}`,
      );
      const [found] = readAtOnce([{ text: `Read ${"so ".repeat(lead)}${hidden.toString("base64")}`, kinds: ["ssn"] }]);
      expect(found, `${lead}`).to.have.length(1);
    }
  });

  it("is read in steps, each of them short", () => {
    const reading = readTexts([
      { text: filler.repeat(5_000), kinds },
      { text: "219-09-9999", kinds },
    ]);
    let steps = 1;
    while (!reading.next().done) steps += 1;
    expect(steps).to.be.within(40, 80);
    const many = readTexts(Array.from({ length: 5_000 }, () => ({ text: "ok", kinds })));
    steps = 1;
    while (!many.next().done) steps += 1;
    expect(steps).to.be.within(20, 80);
  });

  it("is read for a log as far as its values reach", () => {
    const text = `${filler.repeat(30)}${key}`;
    const until = readUntil(text, 0, filler.length * 30 + 10);
    expect(until).to.be.at.least(text.length);
  });
});
