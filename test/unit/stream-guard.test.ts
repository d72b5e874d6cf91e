import { expect } from "chai";
import { findValues, guardKinds } from "../../src/guards/guard.ts";
import { makeStreamGuard } from "../../src/guards/stream-guard.ts";
import { mustBlock, mustPass } from "../support/guard-cases.ts";
import { labelled, nearMisses } from "../support/guard-new-kinds.ts";
import { oddForms } from "../support/guard-odd-forms.ts";

const MARK = "[X]";

function maskWhole(text: string): string {
  let masked = "";
  let at = 0;
  for (const { start, end } of findValues(text, guardKinds)) {
    masked += text.slice(at, start) + MARK;
    at = end;
  }
  return masked + text.slice(at);
}

/** What is sent of a text that comes in these parts, part by part. */
function sentOf(parts: readonly string[]): string[] {
  const guard = makeStreamGuard(guardKinds, () => MARK);
  return [...parts.map(guard.push), guard.end()];
}

const valued = [
  ...[...mustBlock, ...oddForms].flatMap(({ texts }) => texts),
  ...Object.values(labelled).flatMap((all) => all.map(([text]) => text)),
];
const clean = [...mustPass.flatMap(({ texts }) => texts), ...nearMisses];
/** Words around a text, as an answer has. */
const BEFORE = "Here it is, as you asked: ";
const around = (text: string) => `${BEFORE}${text}\n\nThank you, and have a good day, dear friend of ours.`;
/** A text alone and in an answer, with the places where it is cut: all of its own, and those next to it. */
const cutsOf = (text: string) => [
  { text, from: 1, to: text.length },
  { text: around(text), from: BEFORE.length - 2, to: BEFORE.length + text.length + 8 },
];

describe("a guarded stream", () => {
  for (const [name, texts] of Object.entries({ valued, clean })) {
    it(`sends of each ${name} text what the whole text would be, cut at every place into two`, () => {
      const wrong: unknown[] = [];
      for (const { text, from, to } of texts.flatMap(cutsOf)) {
        const expected = maskWhole(text);
        for (let at = from; at < to; at += 1) {
          const sent = sentOf([text.slice(0, at), text.slice(at)]).join("");
          if (sent !== expected) {
            wrong.push([text.slice(0, at), text.slice(at), sent, expected]);
            break;
          }
        }
      }
      expect(wrong, `${wrong.length}: ${JSON.stringify(wrong.slice(0, 12), null, 1)}`).to.have.length(0);
    }).timeout(300_000);
  }

  it("reads a long part in time that grows with its length alone, however many numbers it has", () => {
    const timeOf = (text: string) => {
      const { user, system } = process.cpuUsage();
      sentOf([text]);
      const used = process.cpuUsage({ user, system });
      return (used.user + used.system) / 1_000;
    };
    for (const seed of ["pump 12345 has ", "4111 1111 1111 1112, ", "a@b ", "three dash ", "<a>1</a>", "1234567890"]) {
      const text = seed.repeat(Math.ceil(65_536 / seed.length));
      const best = Math.min(timeOf(text), timeOf(text), timeOf(text));
      expect(best, seed).to.be.below(1_500);
    }
  }).timeout(120_000);

  it("sends the same for each text that comes by the character, and over three parts", () => {
    const wrong: unknown[] = [];
    for (const text of valued.flatMap((one) => [one, around(one)])) {
      const expected = maskWhole(text);
      const splits = [[...text]];
      for (let at = 1; at < Math.min(text.length, 60); at += 3)
        splits.push([text.slice(0, at), text.slice(at, at + 5), text.slice(at + 5)]);
      const bad = splits.map((parts) => sentOf(parts).join("")).find((sent) => sent !== expected);
      if (bad !== undefined) wrong.push([text, bad, expected]);
    }
    expect(wrong, `${wrong.length}: ${JSON.stringify(wrong.slice(0, 12), null, 1)}`).to.have.length(0);
  }).timeout(300_000);
});
