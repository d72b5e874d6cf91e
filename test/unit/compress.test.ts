import { expect } from "chai";
import fc from "fast-check";
import { compressing } from "../../src/gateway/chat/compress.ts";
import type { CompressionReport } from "../../src/gateway/chat/outcome.ts";
import { type Message, textOf } from "../../src/gateway/messages.ts";
import { cpuTimeOf } from "../support/cpu-time.ts";
import { longPrompts, type TestPrompt } from "../support/prompts.ts";

const compress = (messages: Message[]) => {
  const work = compressing({ model: "m", messages });
  let step = work.next();
  while (!step.done) step = work.next();
  const { request, report } = step.value;
  return { messages: request.messages, report };
};
const textOfAll = (messages: readonly Message[]) => messages.map(({ content }) => textOf(content)).join("\n");
const all = (text: string, pattern: RegExp) => [...new Set([...text.matchAll(pattern)].map(([found]) => found))];
/** What must not be lost: numbers, names of several words, addresses, quotations. */
const precious = (text: string) => [
  ...all(text, /\d+(?:\.\d+)?/g),
  ...all(text, /\p{Lu}\p{L}+ \p{Lu}\p{L}+/gu),
  ...all(text, /https?:\/\/\S+/g),
  ...all(text, /"[^"\n]+"/g),
];
const mean = (numbers: number[]) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;

describe("compression of prompts", () => {
  const done = longPrompts.map((prompt): TestPrompt & { report: CompressionReport; compressed: Message[] } => {
    const { messages, report } = compress(prompt.messages);
    return { ...prompt, report, compressed: messages };
  });

  it("takes at least 30 long prompts of different kinds", () => {
    expect(done).to.have.lengthOf.at.least(30);
    expect(new Set(done.map(({ kind }) => kind)).size).to.equal(5);
  });

  for (const kind of ["prose", "history"] as const) {
    it(`shortens ${kind} by at least 30% on average`, () => {
      const ratios = done.filter((one) => one.kind === kind).map(({ report }) => report.ratio);
      expect(1 - mean(ratios)).to.be.at.least(0.3);
      for (const ratio of ratios) expect(ratio).to.be.below(0.9);
    });
  }

  it("keeps every number, name, address and quotation, and the message that is asked", () => {
    for (const { name, messages, compressed } of done) {
      const text = textOfAll(compressed);
      for (const item of precious(textOfAll(messages))) expect(text.includes(item), `${name}: ${item}`).to.equal(true);
      expect(compressed.at(-1), name).to.deep.equal(messages.at(-1));
      expect(compressed[0], "the system prompt").to.deep.equal(messages[0]);
      expect(compressed.map(({ role }) => role)).to.deep.equal(messages.map(({ role }) => role));
    }
  });

  it("leaves code, tables and JSON as they are", () => {
    for (const { name, kind, messages, compressed } of done) {
      if (kind !== "prose" && kind !== "history") expect(compressed, name).to.deep.equal(messages);
    }
  });

  it("adds nothing: the remaining sentences are the prompt's, in their order", () => {
    for (const { name, messages, compressed } of done) {
      for (const [index, { content }] of compressed.entries()) {
        const original = textOf(messages[index]?.content ?? "").replace(/\s+/g, " ");
        let at = 0;
        for (const sentence of textOf(content)
          .split(/(?<=[.!?]) +|\n+/)
          .filter((part) => part.trim() !== "")) {
          const found = original.indexOf(sentence.trim().replace(/\s+/g, " "), at);
          expect(found, `${name}: ${sentence}`).to.be.at.least(0);
          at = found;
        }
      }
    }
  });

  it("says a repeated passage once", () => {
    const passage = longPrompts[0]?.messages[1]?.content ?? "";
    const messages: Message[] = [
      { role: "user", content: passage },
      { role: "assistant", content: "Noted." },
      { role: "user", content: passage },
      { role: "assistant", content: "Noted again." },
      { role: "user", content: "Well?" },
    ];
    const { report, messages: compressed } = compress(messages);
    expect(report.techniques).to.include("say-once");
    expect(report.ratio).to.be.below(0.55);
    expect(textOfAll(compressed).split("14 weekends")).to.have.lengthOf(2);
  });

  it("leaves a context of more than 100,000 lines as it is, whose weighing would take hundreds of megabytes", () => {
    const lines = (count: number) => [
      { role: "user", content: Array.from({ length: count }, (_, n) => `w${"xy".repeat(n % 9)}\n`).join("") } as const,
      { role: "user", content: "What does it say?" } as const,
    ];
    expect(compress(lines(90_000)).report.ratio).to.be.below(0.9);
    const many = lines(110_000);
    expect(compress(many)).to.deep.include({ messages: many });
  });

  for (const [what, sentence] of [
    ["lines of sentences", (n: number) => `Nobody says why the pump of ${"station ".repeat(n % 7)} is loud.\n`],
    ["a line of one piece", (n: number) => (n === 0 ? "Nobody says why the pump is loud.\n" : "word. ")],
  ] as const) {
    it(`lets others have their turn each 32,768 characters of ${what} at least`, () => {
      const content = Array.from({ length: 6_000 }, (_, n) => sentence(n)).join("");
      const messages = Array.from({ length: 5 }, () => ({ role: "user", content }) as const);
      const work = compressing({ model: "m", messages });
      let turns = 0;
      while (!work.next().done) turns += 1;
      expect(turns).to.be.above(2 * messages.length + (2 * 4 * content.length) / 32_768);
    });
  }

  it("does not touch short prompts, tool calls and their results", () => {
    const short: Message[] = [
      { role: "user", content: "Hello   there.\n\n\n\nHow are you?" },
      { role: "assistant", content: "Fine." },
      { role: "user", content: "Good." },
    ];
    expect(compress(short)).to.deep.include({ messages: short });
    const output = textOf(longPrompts[0]?.messages[1]?.content ?? "");
    const withTools: Message[] = [
      { role: "user", content: "Look it up." },
      { role: "assistant", content: output, toolCalls: [{ id: "c", name: "find", arguments: "{}" }] },
      { role: "tool", content: output, toolCallId: "c" },
      { role: "user", content: "And?" },
    ];
    expect(compress(withTools).messages).to.deep.equal(withTools);
  });

  it("gives the same for the same", () => {
    for (const { messages, compressed } of done) expect(compress(messages).messages).to.deep.equal(compressed);
  });

  it("keeps numbers, names and quotations of any text, and never grows", () => {
    const word = fc.constantFrom(
      "the",
      "ship",
      "Ada Byron",
      "3.14",
      "waits",
      "slowly",
      '"so it is"',
      "https://a.b/c",
      "and",
    );
    const sentence = fc.array(word, { minLength: 3, maxLength: 12 }).map((words) => `It was ${words.join(" ")}.`);
    const text = fc.array(sentence, { minLength: 40, maxLength: 80 }).map((sentences) => sentences.join(" "));
    fc.assert(
      fc.property(text, (content) => {
        const messages: Message[] = [
          { role: "user", content },
          { role: "user", content: "So?" },
        ];
        const { report, messages: compressed } = compress(messages);
        expect(report.compressedTokens).to.be.at.most(report.originalTokens);
        for (const item of precious(content)) expect(compressed[0]?.content).to.contain(item);
      }),
      { numRuns: 50 },
    );
  });

  for (const [name, unit] of [
    ["blanks", "   \t "],
    ["one sentence without an end", "word "],
    ["full stops", ". A"],
    ["quotes", '"x '],
    ["empty lines", "\n\n \n"],
    ["fences", "```\n"],
    ["capitals", "A b. C d "],
  ] as const) {
    it(`takes 1 MB of ${name} in linear time`, () => {
      const timeOf = (bytes: number) => {
        const content = unit.repeat(Math.ceil(bytes / unit.length));
        const messages = [
          { role: "user" as const, content },
          { role: "user" as const, content: "So?" },
        ];
        return cpuTimeOf(() => compress(messages));
      };
      timeOf(100_000);
      expect(timeOf(1_000_000)).to.be.below(Math.max(2_000, timeOf(250_000) * 16));
    });
  }
});
