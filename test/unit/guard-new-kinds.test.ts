import { expect } from "chai";
import { type GuardKind, guardKinds, inspect } from "../../src/guards/guard.ts";
import { labelled, nearMisses } from "../support/guard-new-kinds.ts";

const newKinds: readonly GuardKind[] = ["email_address", "phone_number", "ip_address", "secret"];

describe("guards of e-mail addresses, telephone numbers, IP addresses and secrets", () => {
  for (const kind of newKinds) {
    for (const [text, value] of labelled[kind] ?? []) {
      it(`finds the ${kind} in ${JSON.stringify(text)}`, () => {
        const found = inspect(text, [kind]).map(({ start, end }) => text.slice(start, end));
        expect(found).to.deep.equal([value]);
      });
    }
  }
  for (const text of nearMisses) {
    it(`lets ${JSON.stringify(text)} through`, () => {
      expect(inspect(text, newKinds)).to.deep.equal([]);
    });
  }

  it("reads any row of near misses and of values in linear time", () => {
    const seeds = [...nearMisses, ...Object.values(labelled).flatMap((all) => all.map(([text]) => text))];
    for (const seed of [
      ...seeds,
      "@",
      "a@",
      "a.",
      "1.",
      ":",
      "f:",
      "+1",
      "-----BEGIN PRIVATE KEY-----",
      "://a:b",
      "eyJa",
      "sk-1",
    ]) {
      const text = seed.repeat(Math.ceil((64 << 10) / seed.length));
      const before = process.cpuUsage();
      inspect(text, newKinds);
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1_000, JSON.stringify(seed)).to.be.below(500);
    }
  }).timeout(120_000);

  it("reads a megabyte of near misses for all kinds within two seconds of processor time", () => {
    const row = nearMisses.join("\n");
    const text = row.repeat(Math.ceil((1 << 20) / row.length));
    const before = process.cpuUsage();
    inspect(text, guardKinds);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).to.be.below(2_000);
  }).timeout(30_000);
});
