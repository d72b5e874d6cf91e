import { expect } from "chai";
import { embedOffline } from "../../src/gateway/providers/edge/offline-embed.ts";

const one = (text: string): Float32Array => embedOffline([text])[0] ?? new Float32Array();
const lengthOf = (vector: Float32Array): number => Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));

function cosine(left: string, right: string): number {
  const [a, b] = [one(left), one(right)];
  return a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
}

const pumps =
  "The pump moves cooling water through the engine. When a bearing of the pump wears out, the engine overheats.";
const tax = "Income from shares is taxed once a year. Losses of earlier years reduce what has to be paid.";

describe("the offline embedding", () => {
  it("gives one vector of length 1 a text, in order, of the asked dimension", () => {
    const made = embedOffline([pumps, tax, pumps]);
    expect(made.map(({ length }) => length)).to.deep.equal([512, 512, 512]);
    for (const vector of made) expect(lengthOf(vector)).to.be.closeTo(1, 1e-6);
    expect(made[0]).to.deep.equal(made[2]);
    expect(made[0]).not.to.deep.equal(made[1]);
    expect(embedOffline([tax], 100)[0]).to.have.length(100);
    expect(embedOffline([])).to.deep.equal([]);
  });

  it("gives the same vector whatever was embedded before, also beyond what it remembers", () => {
    const before = one(pumps);
    const many = Array.from({ length: 70 }, (_, text) =>
      Array.from({ length: 1_000 }, (_, word) => `w${(text * 1_000 + word).toString(36)}`).join(" "),
    );
    embedOffline([...many, pumps], 64);
    expect(one(pumps)).to.deep.equal(before);
  });

  it("places a question nearer to the text that answers it than to another", () => {
    const question = "why does an engine overheat?";
    expect(cosine(question, pumps)).to.be.greaterThan(0.2);
    expect(cosine(question, tax)).to.be.lessThan(0.1);
  });

  it("sees forms, spellings and compounds of a word as near, and other words as far", () => {
    expect(cosine("measuring pumps", "the measurement of a pump")).to.be.greaterThan(0.6);
    expect(cosine("Überprüfung der Kühlung", "uberprufung der kuhlung")).to.be.closeTo(1, 1e-6);
    expect(cosine("aerodynamics", "aerodynamically")).to.be.greaterThan(0.5);
    expect(cosine("thermoplastic", "thermoplastics resin")).to.be.greaterThan(0.5);
    expect(cosine("aerodynamics", "placenta")).to.be.lessThan(0.25);
  });

  it("hardly counts stop words", () => {
    expect(cosine("the pump and the valve", "pump valve")).to.be.greaterThan(0.99);
    expect(cosine("What is it that the pump has?", "What is it that the tax has?")).to.be.lessThan(0.25);
  });

  it("distinguishes texts of stop words alone", () => {
    expect(cosine("to be or not to be", "To be, or not to be")).to.be.closeTo(1, 1e-6);
    expect(cosine("to be or not to be", "how are you")).to.be.lessThan(0.9);
  });

  it("reads scripts that put no spaces between words", () => {
    const question = "发动机过热";
    expect(cosine(question, "水泵损坏时，发动机会过热。")).to.be.greaterThan(0.3);
    expect(cosine(question, "股票收入每年征税一次。")).to.be.lessThan(0.2);
    expect(cosine("насос двигателя", "Насосы и двигатели")).to.be.greaterThan(0.3);
  });

  it("takes texts without any word, and very long ones", () => {
    for (const text of ["", "   \n", "?!… — 🙂", "\ud800"]) {
      expect(lengthOf(one(text))).to.be.closeTo(1, 1e-6);
      expect([...one(text)].every(Number.isFinite)).to.equal(true);
    }
    for (const text of ["x".repeat(400_000), "pump ".repeat(80_000), "a.".repeat(200_000)]) {
      expect(lengthOf(one(text))).to.be.closeTo(1, 1e-6);
    }
  });
});
