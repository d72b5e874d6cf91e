import { expect } from "chai";
import { makeMemory } from "../../src/isolation/memory.ts";
import { isInstant, makeEvaluator } from "../../src/workflows/evaluator.ts";
import type { StepField } from "../../src/workflows/step-texts.ts";
import { makeParsedTexts } from "../../src/workflows/templates.ts";

const none = { text: "null" };
const scopeOf = (input: unknown) => ({
  input: { text: JSON.stringify(input) },
  run: none,
  previous: { text: JSON.stringify("p".repeat(50_000)) },
  steps: new Map<string, never>(),
});
const condition = (value: unknown): StepField => ({ at: "expression", value, kind: "condition" });
const prompt = (value: unknown): StepField => ({ at: "prompt", value, kind: "text" });

describe("steps whose expressions need no watch", () => {
  const parsed = makeParsedTexts();
  const parse = ({ value, kind }: StepField) => {
    if (typeof value === "string") kind === "condition" ? parsed.condition(value) : parsed.template(value);
  };
  const some = { name: "Ana", list: [1, 2, 3] };

  const instant: [name: string, fields: StepField[], input: unknown][] = [
    ["a comparison", [condition("input.name == 'Ana' && size(input.list) > 2")], some],
    ["a template", [prompt("Greet {{ input.name }}, who is {{ input.list[0] + 1 }}.")], some],
    ["a text without expressions", [prompt("Greet Ana.")], some],
    ["a long value that it does not read", [condition("input.name == ''")], some],
  ];
  for (const [name, fields, input] of instant)
    it(`${name} is one, once its texts are parsed`, () => {
      fields.forEach(parse);
      expect(isInstant({ fields, scope: scopeOf(input) }, parsed)).to.equal(true);
    });

  const watched: [name: string, fields: StepField[], input: unknown][] = [
    ["a loop", [condition("input.list.all(one, one > 0)")], some],
    ["a regular expression", [condition("input.name.matches('^(a+)+$')")], some],
    ["a call of what it does not know", [condition("input.name.join('') == ''")], some],
    ["a long value", [condition("previous == ''")], some],
    ["a long value in a short text", [prompt("{{ input }}")], "a".repeat(20_000)],
    ["many looks at a value", [condition(Array(40).fill("input == 1").join(" || "))], "a".repeat(5_000)],
    ["sums of a value", [condition(`${Array(20).fill("input").join("+")} == ''`)], "a".repeat(1_000)],
    ["a long text", [prompt(`{{ input.name }}${" ".repeat(1_000)}`)], some],
    ["long texts together", [prompt(" ".repeat(600)), prompt(`${" ".repeat(600)}{{ input.name }}`)], some],
    [
      "a value with texts in it, though they are parsed",
      [prompt("{{ input.name }}"), { at: "body", value: { name: "{{ input.name }}" }, kind: "value" }],
      some,
    ],
  ];
  for (const [name, fields, input] of watched)
    it(`${name} is none`, () => {
      fields.forEach(parse);
      expect(isInstant({ fields, scope: scopeOf(input) }, parsed)).to.equal(false);
    });

  it("values that are too long for any expression are none, and are reported with the field", async () => {
    const evaluator = makeEvaluator(makeMemory());
    const fields = [condition("input == 1")];
    const fill = (input: unknown) =>
      evaluator.fill({ tenantId: "t" }, { field: "steps[0]", fields, scope: scopeOf(input) });
    try {
      expect(await fill(1)).to.deep.equal({ expression: true });
      const error = await fill("a".repeat(17_000_000)).catch((thrown: unknown) => thrown);
      expect(error).to.include({ code: "invalid_request", param: "steps[0].expression" });
    } finally {
      await evaluator.close();
    }
  });

  it("a text that was not parsed yet is none", () => {
    const fields = [condition("input.name == 'somebody new'")];
    expect(isInstant({ fields, scope: scopeOf(some) }, parsed)).to.equal(false);
  });
});
