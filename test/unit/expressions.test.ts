import { expect } from "chai";
import { makeMemory } from "../../src/isolation/memory.ts";
import type { AppError } from "../../src/lib/errors.ts";
import { toCel } from "../../src/workflows/cel-values.ts";
import { makeEvaluator } from "../../src/workflows/evaluator.ts";
import { ExpressionProblem, makeRoom, parseExpression, type Scope } from "../../src/workflows/expressions.ts";
import { parseTemplate } from "../../src/workflows/templates.ts";
import { cpuTimeOf } from "../support/cpu-time.ts";

const scopeOf = (input: unknown, steps: object = {}, previous: unknown = null): Scope => ({
  input: toCel(input),
  run: toCel({ runId: "wfr_1", version: 3 }),
  steps: toCel(steps),
  previous: toCel(previous),
});
const input = {
  name: "Ana",
  age: 41,
  score: 0.75,
  tags: ["a", "b"],
  order: { total: 12.5, lines: [{ sku: "x", count: 2 }] },
  "odd key": 1,
  none: null,
  when: "2026-11-20T08:00:00Z",
  proto: "__proto__",
  prototype: 7,
};
const scope = scopeOf(input, { first: { output: { rows: [1, 2, 3] }, status: "completed" } }, "before");

describe("expressions", () => {
  const good: [text: string, value: unknown][] = [
    ["input.name", "Ana"],
    ["input['odd key']", 1],
    ["input.age > 40 && input.score < 1.0", true],
    ["input.age + 1", 42],
    ["input.age * input.score", 30.75],
    ["input.order.total / 2", 6.25],
    ["7 / 2", 3.5],
    ["7.0 / 2", 3.5],
    ["6 / 2", 3],
    ["6 / 2 == 3 && 3 == 6 / 2 && 6 / 2 < 4", true],
    ["input.age / 2", 20.5],
    ["input.prototype / input.order.lines[0].count", 3.5],
    ["steps.first.output.rows.map(r, r / 2)", [0.5, 1, 1.5]],
    ["-7 / 2 / 2", -1.75],
    ["div(7, 2)", 3],
    ["div(-7, 2)", -3],
    ["div(7.9, 2)", 3],
    ["div(input.age, 2) + 1", 21],
    ["[1, 2, 3][div(input.order.lines[0].count, 2)]", 2],
    ["input.tags.exists(t, t == 'b')", true],
    ["input.tags.map(t, t + '!')", ["a!", "b!"]],
    ["input.tags.join(' and ')", "a and b"],
    ["input.order.lines.filter(l, l.count > 1).size()", 1],
    ["has(input.order.total) && !has(input.order.discount)", true],
    ["input.none == null", true],
    ["input.?missing.orValue('none')", "none"],
    ["steps.first.output.rows[2]", 3],
    ["steps['first'].status", "completed"],
    ["previous + '!'", "before!"],
    ["run.version == 3", true],
    ["input.name.matches('^A.a$')", true],
    ["input.name in ['Ana', 'Ben']", true],
    ["timestamp(input.when).getFullYear()", 2026],
    ["duration('90s') > duration('1m')", true],
    ["{'a': [1, 2.5], 'b': {'c': true}}", { a: [1, 2.5], b: { c: true } }],
    ["size('häßlich')", 7],
    ["input.score >= 0.5 ? 'pass' : 'fail'", "pass"],
    ["'a' + \"b\"", "ab"],
    ["9007199254740993", "9007199254740993"],
    ["bytes('abc')", "YWJj"],
    ["input.prototype", 7],
    ["duration('61s').getMinutes()", 1],
    ["timestamp(input.when) + duration('1s')", "2026-11-20T08:00:01.000Z"],
    ["[duration('1s')].map(d, has(d.seconds) || has(d.toString))", [false]],
  ];
  for (const [text, value] of good) {
    it(`${text} is ${JSON.stringify(value)}`, () => {
      expect(parseExpression(text).evaluate(scope, makeRoom())).to.deep.equal(value);
    });
  }

  const refused: [text: string, position: number][] = [
    ["", 0],
    ["input.", 6],
    ["1 +", 3],
    ["input.name)", 10],
    ["unknown.thing", 0],
    ["'open", 0],
    ["1 + 'a'", 0],
    ["noSuchFunction(input)", 0],
    ["input.name = 'x'", 11],
    ["input.a; input.b", 7],
    ["() => 1", 1],
    ["process.exit(1)", 0],
    ["import('fs')", 0],
    ["`back`", 0],
    ["google.protobuf.Duration", 0],
    ["timestamp('2026-01-02T03:04:05Z').constructor", 34],
    ["duration('1s').__proto__", 15],
    ["duration('1s')['__proto__']", 0],
    ["duration('1s').seconds", 15],
    ["[duration('1s')][0].getSeconds", 20],
  ];
  for (const [text, position] of refused) {
    it(`${JSON.stringify(text)} is refused when it is written, with its place`, () => {
      const problem = problemOf(() => parseExpression(text));
      expect(problem.message).to.match(/\S/);
      expect(Math.abs(problem.position - position), `${problem.message} at ${problem.position}`).to.be.at.most(2);
    });
  }

  for (const [text, hint] of [
    ["input.age === 41", "Use `==`."],
    ["input.age !== 41", "Use `!=`."],
    ["input.age = 41", "Use `==` to compare."],
    ["input.age > 1 and input.score > 0", "Use `&&`."],
    ["input.age > 1 or input.score > 0", "Use `||`."],
    ["not input.age", "Use `!`."],
    ["input.age > 1 &&", "The expression ends too early"],
  ] as const) {
    it(`${text} is refused with what is wrong in it`, () => {
      expect(problemOf(() => parseExpression(text)).message).to.contain(hint);
    });
  }

  const failing: [text: string, message: RegExp][] = [
    ["input.missing", /^input\.missing has no value$/],
    ["input.order.deep + 1", /^input\.order\.deep has no value$/],
    ["input['no key']", /^input\['no key'\] has no value$/],
    ["steps.second.output", /^steps\.second has no value$/],
    ["input.order.total.deep", /./],
    ["input.tags[7]", /./],
    ["input.name + input.age", /Convert a side, as with string\(x\)/],
    ["1 / 0", /zero/i],
    ["1.5 / 0", /zero/i],
    ["input.age / 0", /zero/i],
    ["div(1, 0)", /zero/i],
    ["input.score / (input.score - 0.75)", /no number/],
    ["input.name / 2", /string \/ number/],
    ["int('x')", /./],
    ["input.constructor", /./],
    ["input.__proto__", /./],
    ["input['__proto__'].polluted", /./],
    ["input.toString()", /./],
    ["input.name.constructor", /./],
    ["input.tags.length", /./],
    ["timestamp('2026-01-02T03:04:05Z')['construc' + 'tor']", /No such key/],
    ["duration('1s')['__pro' + 'to__']", /No such key/],
    ["duration('1s')[input.proto]", /No such key/],
    ["dyn(duration('1s'))[input.proto]", /No such key/],
    ["dyn(duration('1s')).seconds", /has no value/],
    ["[duration('1s')].map(d, d[input.proto])", /No such key/],
    ["cel.bind(d, dyn(timestamp(input.when)), d['get' + 'Time'])", /No such key/],
    ["duration('1s')[?input.proto].value()", /not present/],
    ["optional.of(dyn(duration('1s')))[?'to' + 'String'].value()", /not present/],
    ["dyn(optional)[input.proto]", /No such key/],
    ["dyn(optional).of", /has no value/],
    ["dyn(bytes('abc'))['buf' + 'fer']", /No such key/],
  ];
  for (const [text, message] of failing) {
    it(`${text} has no value, and says why`, () => {
      expect(problemOf(() => parseExpression(text).evaluate(scope, makeRoom())).message).to.match(message);
    });
  }

  describe("that are hostile", () => {
    const long = { list: Array.from({ length: 2_000 }, (_, n) => n), text: `${"a".repeat(5_000)}!` };
    const times = (count: number, make: (inner: string) => string, inner: string) => {
      let text = inner;
      for (let n = 0; n < count; n += 1) text = make(text);
      return text;
    };
    const cases: Record<string, string> = {
      "nested parentheses": times(5_000, (inner) => `(${inner})`, "1"),
      "a long chain": `1${" + 1".repeat(20_000)}`,
      "nested lists": times(2_000, (inner) => `[${inner}]`, "1"),
      "a huge list": `[${"1,".repeat(50_000)}1]`,
      "a huge map": `{${Array.from({ length: 10_000 }, (_, n) => `'${n}':1`).join(",")}}`,
      "nested ternaries": times(1_000, (inner) => `true ? ${inner} : 1`, "1"),
      "nested loops": "input.list.map(a, input.list.map(b, input.list.map(c, a + b + c))).size()",
      "a loop over loops": "input.list.all(a, input.list.all(b, input.list.all(c, a + b + c >= 0)))",
      "a regular expression that backtracks": "input.text.matches('^(a+)+$')",
      "a regular expression with many ways": "input.text.matches('(a|a)*(a|a)*(a|a)*b')",
      "a text that doubles": `input.text${times(30, (inner) => `(${inner})`, "")}`,
    };
    const evaluator = makeEvaluator(makeMemory());
    after(() => evaluator.close());
    for (const [name, value] of Object.entries(cases)) {
      it(`${name} are refused or stopped, and delay nothing else`, async function () {
        this.timeout(60_000);
        const steps = new Map<string, never>();
        const none = { text: "null" };
        const scope = { input: { text: JSON.stringify(long) }, run: none, previous: none, steps };
        const fields = [{ at: "expression", value, kind: "condition" as const }];
        const evaluate = () =>
          evaluator.fill({ tenantId: "evil" }, { field: "steps[0]", fields, scope }).then(
            ({ expression }) => expect.fail(`it gave ${JSON.stringify(expression).slice(0, 200)}`),
            (thrown: AppError) => thrown,
          );
        let before = process.threadCpuUsage();
        let error = await evaluate();
        while (error.code === "unavailable") {
          before = process.threadCpuUsage(); // the machine had no time for it; a job would attempt it again
          error = await evaluate();
        }
        const { user, system } = process.threadCpuUsage(before);
        expect([error.code, error.param], error.message).to.deep.equal(["invalid_request", "steps[0].expression"]);
        // Time that others had the processor does not count. The worst case took 153 ms once, and takes 44 ms as a rule.
        expect((user + system) / 1_000).to.be.lessThan(300);
      });
    }
    it("a result that is too long is refused", () => {
      const text = `input.list.map(a, input.text)`;
      expect(problemOf(() => parseExpression(text).evaluate(scopeOf(long), makeRoom())).message).to.match(
        /characters|longer/,
      );
    });
    it("keys of objects' own making stay data, and change no prototype", () => {
      const given: unknown = JSON.parse('{"__proto__": {"polluted": true}, "constructor": 7}');
      expect(parseExpression("input").evaluate(scopeOf(given), makeRoom())).to.deep.include({ constructor: 7 });
      expect(parseExpression("{'__proto__': {'polluted': true}}").evaluate(scope, makeRoom())).to.be.an("object");
      expect(({} as { polluted?: unknown }).polluted).to.equal(undefined);
    });
    it("the next expression is evaluated as if nothing had been", () => {
      expect(parseExpression("input.age").evaluate(scope, makeRoom())).to.equal(41);
    });
  });
});

describe("templates", () => {
  const cases: [template: string, text: string, value?: unknown][] = [
    ["plain", "plain"],
    ["{{ input.name }}", "Ana"],
    ["Hi {{ input.name }}, you are {{input.age + 1}}.", "Hi Ana, you are 42."],
    ["{{ input.tags }}", '["a","b"]', ["a", "b"]],
    ["{{ input.none }}", "", null],
    [" {{ input.age }}", " 41", 41],
    ["{{ input.tags }}\n", '["a","b"]\n', ["a", "b"]],
    [" a{{ input.age }}", " a41"],
    ["{{ input.age }}", "41", 41],
    ["{{ {'a': {'b': 1}} }}", '{"a":{"b":1}}', { a: { b: 1 } }],
    ["{{ 'a }} b' }}", "a }} b"],
    ["{ not one } and }} neither", "{ not one } and }} neither"],
    ["{{ input.name }}{{ input.age }}", "Ana41", "Ana41"],
  ];
  for (const [template, text, value = text] of cases) {
    it(`${template} gives ${JSON.stringify(value)}`, () => {
      const parsed = parseTemplate(template);
      expect(parsed.fillText(scope, makeRoom())).to.equal(text);
      expect(parsed.fillValue(scope, makeRoom())).to.deep.equal(value);
    });
  }
  it("report the steps that they name, and where in the whole text a problem is", () => {
    expect(
      parseTemplate("{{ steps.a.output }} {{ steps['b'].output + steps.?c.output.orValue('') }}").expressions.flatMap(
        ({ stepIds }) => stepIds,
      ),
    ).to.deep.equal(["a", "b", "c"]);
    expect(problemOf(() => parseTemplate("Hello {{ 1 + }}")).position).to.be.within(9, 14);
    expect(problemOf(() => parseTemplate("Hello {{ input.x")).position).to.equal(6);
  });
  it("with many openings are read in linear time", () => {
    const texts = ["{{".repeat(100_000), `${"{{ 1 }}".repeat(99)}{{ '`];
    for (const text of texts) expect(cpuTimeOf(() => problemOf(() => parseTemplate(text)))).to.be.below(1_000);
  });
});

function problemOf(work: () => unknown): ExpressionProblem {
  try {
    const value = work();
    throw new Error(`it gave ${JSON.stringify(value)?.slice(0, 200)}`);
  } catch (error) {
    if (error instanceof ExpressionProblem) return error;
    throw error;
  }
}
