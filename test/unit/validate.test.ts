import { expect } from "chai";
import { z } from "zod";
import { knownFields, parseInput } from "../../api/middleware/validate.ts";
import { AppError } from "../../src/errors.ts";

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

  it("knows the fields of objects, unions and refined schemas, and takes any where the schema does", () => {
    expect(knownFields(z.object({ a: z.string() }))).to.deep.equal(new Set(["a"]));
    expect(knownFields(z.object({ a: z.string() }).transform((value) => value.a))).to.deep.equal(new Set(["a"]));
    expect(knownFields(z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]))).to.deep.equal(
      new Set(["a", "b"]),
    );
    expect(knownFields(z.object({ a: z.string() }).refine(() => true))).to.deep.equal(new Set(["a"]));
    expect(knownFields(z.looseObject({ a: z.string() }))).to.equal(undefined);
    expect(knownFields(z.record(z.string(), z.string()))).to.equal(undefined);
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

    it("refuses wrong and missing fields, however many combinations of fields there were before", () => {
      for (const [place, name] of names.entries()) {
        expect(problems(wide, { [name]: "x", messages: [1] }).paths).to.deep.equal([name, "messages[0]"]);
        expect(problems(wide, { [name]: place }).paths).to.deep.equal(["messages"]);
        expect(parse({ [name]: place, messages: [] })).to.deep.equal({ model: "m", messages: [], [name]: place });
      }
    });
  });
});
