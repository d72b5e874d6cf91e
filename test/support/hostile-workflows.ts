import { chatModel, condition } from "./workflow-harness.ts";

/** A workflow that was written to use up the service, and the input of its runs. */
export type HostileWorkflow = { steps: object[]; inputSchema?: object; input?: unknown };

const completion = (prompt: string, systemPrompt?: string) => ({
  type: "ai_completion",
  model: chatModel,
  prompt,
  ...(systemPrompt === undefined ? {} : { systemPrompt }),
});
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
const chained = (first: string, count: number) => `${first}${".map(x, x + x)".repeat(count)}`;

/** Templates of many expressions, each of which loops for as long as it may; 4,738 of them fill a text. */
export const manyLoops = (expressions: number): HostileWorkflow => {
  const text = "{{input.l.all(a,input.l.all(b,a!=b+999))}}".repeat(expressions);
  return { steps: [completion(text, text)], input: { l: numbers(400) } };
};

/** Runs that cost seconds or much memory in a single operation, by what they do. */
export const slowRuns: Record<string, HostileWorkflow> = {
  "loops without an end": {
    steps: [condition("input.l.all(a, input.l.all(b, input.l.all(c, a + b + c >= 0)))", [])],
    input: { l: numbers(3_000) },
  },
  "searches a text again and again for one that nearly fits everywhere": {
    steps: [condition("[1, 2, 3, 4].exists(n, input.s.lastIndexOf(input.t) > n)", [])],
    input: { s: "a".repeat(160_000), t: `${"a".repeat(80_000)}b` },
  },
  "doubles a text, and looks for a pattern in it": {
    steps: [condition(`${chained("[input.s]", 11)}.exists(x, x.matches('^(a|aa)+z$'))`, [])],
    input: { s: "a".repeat(160_000) },
  },
  "doubles a list": {
    steps: [condition(`size(${chained("[input.l]", 20)}) > 3`, [])],
    input: { l: numbers(30_000) },
  },
  "nests a value that is repeated within itself": {
    steps: [completion(`{{ [input.s]${".map(x, [x, x, x, x, x, x, x, x])".repeat(20)} }}`)],
    input: { s: "a".repeat(100_000) },
  },
  "matches a regular expression that backtracks": {
    steps: [condition("input.s.matches('^(a+)+$')", [])],
    input: { s: `${"a".repeat(5_000)}!` },
  },
};

/** A text of 25 MB, of expressions that are allowed each. */
export const longText: HostileWorkflow = {
  steps: [completion("{{ input.s }}".repeat(100))],
  input: { s: "a".repeat(250_000) },
};

/** Schemas whose check takes very long, each with an input that it takes long for. */
export const slowSchemas: Record<string, HostileWorkflow> = {
  "alternatives that double at each level": {
    steps: [condition("true", [])],
    inputSchema: doubling(26),
    input: 1,
  },
  "a pattern that backtracks": {
    steps: [condition("true", [])],
    inputSchema: { type: "string", pattern: "^(a+)+$" },
    input: `${"a".repeat(40)}!`,
  },
};

function doubling(levels: number): object {
  const to = (n: number) => ({ $ref: `#/$defs/d${n}` });
  const definitions = Array.from({ length: levels }, (_, n) => [
    `d${n}`,
    n === levels - 1
      ? { type: "string" }
      : { anyOf: [{ type: "array", items: to(n + 1) }, { allOf: [to(n + 1), to(n + 1)] }] },
  ]);
  return { $ref: "#/$defs/d0", $defs: Object.fromEntries(definitions) };
}

/** Schemas that refer to themselves without ever reaching a part of the input. */
export const circularSchemas: Record<string, object> = {
  "the root refers to itself": { $ref: "#" },
  "a definition refers to itself": { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } },
  "two definitions refer to each other": {
    type: "object",
    properties: { a: { $ref: "#/$defs/a" } },
    $defs: { a: { anyOf: [{ $ref: "#/$defs/b" }] }, b: { allOf: [{ type: "string" }, { $ref: "#/$defs/a" }] } },
  },
};
