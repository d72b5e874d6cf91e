import { expect } from "chai";
import { z } from "zod";
import { findUnknown } from "../../api/middleware/unknown-fields.ts";
import { parseInput } from "../../api/middleware/validate.ts";
import { AppError } from "../../src/lib/errors.ts";
import { limiting } from "../../src/lib/limiting.ts";

/** What parsing `value` is refused with. */
function problems(schema: z.ZodType, value: unknown): { param: string | undefined; paths: string[] } {
  try {
    parseInput(schema, value, "body");
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const details = z.array(z.object({ path: z.string() })).parse(error.details);
    return { param: error.param, paths: details.map(({ path }) => path) };
  }
  throw new Error("it was accepted");
}

describe("input validation", () => {
  const chat = z.object({
    model: z.string(),
    messages: z.array(z.object({ role: z.enum(["user"]), parts: z.array(z.object({ text: z.string() })) })),
  });

  it("lists every problem with its full path", () => {
    const value = {
      model: 7,
      messages: [
        { role: "user", parts: [{ text: 1 }] },
        { role: "x", parts: [{ text: "" }, 3] },
      ],
    };
    expect(problems(chat, value)).to.deep.equal({
      param: "model",
      paths: ["model", "messages[0].parts[0].text", "messages[1].role", "messages[1].parts[1]"],
    });
  });

  it("names the whole body when that is of the wrong type", () => {
    expect(problems(chat, [])).to.deep.equal({ param: "body", paths: [""] });
  });

  it("reports the problems of the intended branch of a union", () => {
    const source = z.union([z.object({ url: z.string() }), z.object({ content: z.string(), title: z.string() })]);
    expect(problems(source, { content: 5, title: "t" }).paths).to.deep.equal(["content"]);
    expect(problems(source, { url: [] }).paths).to.deep.equal(["url"]);
  });

  it("lists at most 100 problems", () => {
    const value = { model: "m", messages: Array.from({ length: 500 }, () => 1) };
    expect(problems(chat, value).paths).to.have.length(100);
  });

  describe("finds what a schema does not know", () => {
    const unknown = (schema: z.ZodType, value: unknown) =>
      findUnknown(schema, value).map(({ path, near }) => [path.join("."), near].filter(Boolean).join(" for "));
    const one = z.object({ a: z.string() });
    const byType = z.union([
      z.object({ type: z.literal("x"), a: z.string() }),
      z.object({ type: z.literal("y"), b: one }),
      z.array(one),
    ]);
    const cases: [name: string, schema: z.ZodType, value: unknown, found: string[]][] = [
      ["in an object", one, { a: "", b: 1, c: 2 }, ["b", "c"]],
      ["before a transform", one.transform((value) => value.a), { a: "", b: 1 }, ["b"]],
      ["after a preprocess", z.preprocess((value) => value, one), { a: "", b: 1 }, ["b"]],
      ["behind a refinement", one.refine(() => true).optional(), { b: 1 }, ["b"]],
      [
        "in lists, each once",
        z.object({ list: z.array(one) }),
        { list: [{ a: "" }, { b: 1 }, { b: 2 }] },
        ["list.1.b"],
      ],
      ["in the values of a record", z.record(z.string(), one), { k: { a: "", b: 1 } }, ["k.b"]],
      ["of the alternative that is meant", byType, { type: "y", b: { a: "", d: 1 }, a: 1 }, ["b.d", "a"]],
      ["of a list among alternatives", byType, [{ a: "", d: 1 }], ["0.d"]],
      ["of no alternative alone", z.union([one, z.object({ b: z.string() })]), { a: "", b: "", c: 1 }, ["c"]],
      ["not in loose objects", z.looseObject({ a: one }), { a: { a: "", b: 1 }, c: 1 }, ["a.b"]],
      ["not in records", z.record(z.string(), z.string()), { c: "" }, []],
      ["not in strict objects, which refuse it", z.strictObject({ a: one }), { b: 1 }, []],
      ["of a prototype's name", one, JSON.parse('{"__proto__":1,"constructor":2}'), ["__proto__", "constructor"]],
    ];
    for (const [name, schema, value, found] of cases) {
      it(name, () => expect(unknown(schema, value)).to.deep.equal(found));
    }

    it("and gives a limiting field in another spelling its name, or says that it was meant", () => {
      const schema = z.object({ maxCost: limiting(z.number().optional()), tags: z.array(z.string()).optional() });
      const value = { max_cost: 3, tag: "x" };
      expect([unknown(schema, value), value]).to.deep.equal([["tag"], { maxCost: 3, tag: "x" }]);
      expect(unknown(schema, { maxCots: 3 })).to.deep.equal(["maxCots for maxCost"]);
      expect(unknown(schema, { maxCost: 3, MAX_COST: 4 }), "which one?").to.deep.equal(["MAX_COST for maxCost"]);
    });

    it("and no more than 20 of it, in a value of any size and depth", () => {
      const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`k${n}`, n]));
      expect(unknown(one, many)).to.have.length(20);
      const tree: z.ZodType = z.lazy(() => z.object({ next: tree.optional() }));
      const deep = JSON.parse(`${'{"next":'.repeat(5_000)}{}${"}".repeat(5_000)}`);
      expect(unknown(tree, deep)).to.deep.equal([]);
    });
  });

  describe("of a schema with many optional fields", () => {
    const names = Array.from({ length: 40 }, (_, n) => `field${n}`);
    const wide = z.object({
      model: z.string().nullable().default("m"),
      ...Object.fromEntries(names.map((name) => [name, z.number().nullish()])),
      messages: z.array(z.string()),
    });
    const parse = (value: unknown) => parseInput(wide, value, "body");

    it("gives the fields that a value has, defaults, and nothing that the schema does not know", () => {
      for (const given of [{}, { field3: 1 }, { field3: null, field39: 2 }, { model: "own" }]) {
        const value = { messages: ["a"], ...given, other: 1 };
        expect(parse(value)).to.deep.equal({ model: "m", messages: ["a"], ...given });
      }
    });
  });
});
