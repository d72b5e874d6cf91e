import { Environment } from "@marcbachmann/cel-js";
import { LRUCache } from "lru-cache";
import { fromCel, NoRoom, type Room } from "./cel-values.ts";
import { addDivision, divideAsDecimals, inOperators } from "./division.ts";
import { costOf, type ExpressionCost } from "./expression-cost.ts";
import { typedNames, typeInput } from "./input-types.ts";
import type { Schemas } from "./known-schemas.ts";

/** Longest expression, in characters. */
const MAX_LENGTH = 10_000;
/** Longest values that the expressions of one step may have together, in characters of JSON. */
const MAX_VALUES = 1_000_000;
/** How much of a text a message repeats. */
const SHOWN = 200;

/** What expressions of steps may name, and what rules may: conditions that stand for themselves, as of an approval. */
const stepNames = { input: "dyn", steps: "map", previous: "dyn", run: "map" };
const ruleNames = ["arguments", "context", "event"] as const;
export type RuleName = (typeof ruleNames)[number];

/** What expressions see. Values are as CEL has them; see `cel-values.ts`. */
export type Scope = Readonly<Record<string, unknown>>;

/** The problem of an expression, worded for its author. `position` counts characters from 0. */
export class ExpressionProblem extends Error {
  override name = "ExpressionProblem";
  readonly position: number;

  constructor(message: string, position: number) {
    super(message);
    this.position = position;
  }
}

export type Expression = ExpressionCost & {
  /** Whether its value can be true or false, as far as is known before it is evaluated. */
  mayBeBoolean: boolean;
  /** The same, of a list. */
  mayBeList: boolean;
  /** What is known of it when what it names fits these schemas. @throws ExpressionProblem when it can have no value then. */
  typed(schemas: Schemas): Pick<Expression, "mayBeBoolean" | "mayBeList">;
  /** The value, as JSON has it. @throws ExpressionProblem. */
  evaluate(scope: Scope, room: Room): unknown;
};

/** The room for the values of one step. */
export const makeRoom = (): Room => ({ left: MAX_VALUES });

/**
 * The Common Expression Language (https://github.com/google/cel-spec), bounded in size when it is parsed; who evaluates it
 * bounds what it costs. Numbers of both kinds mix, since JSON has but one; see `division.ts`.
 */
function makeEnvironment(names: Readonly<Record<string, string>>): Environment {
  const made = addMixedNumbers(
    new Environment({
      homogeneousAggregateLiterals: false,
      enableOptionalTypes: true,
      limits: { maxAstNodes: 1_000, maxDepth: 40, maxListElements: 200, maxMapEntries: 200, maxCallArguments: 16 },
    }),
  );
  for (const [name, type] of Object.entries(names)) made.registerVariable(name, type);
  closeObjects(made);
  return made;
}

const ofSteps = makeEnvironment(stepNames);
/** Environments of steps that see further names, as the item of a list; how many are kept. */
const MAX_KEPT = 50;
const withNames = new LRUCache<string, Environment>({ max: MAX_KEPT });

function environmentOf(names: readonly string[], typed: Readonly<Record<string, string>> = {}): Environment {
  const key = [...names, ...Object.keys(typed)].sort().join(" ");
  if (key === "") return ofSteps;
  const found = withNames.get(key) ?? makeEnvironment({ ...stepNames, ...dynamic(names), ...typed });
  withNames.set(key, found);
  return found;
}

function dynamic(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, "dyn"]));
}

const ofRules = makeEnvironment(dynamic(ruleNames));

type ObjectTypes = Map<unknown, { fields?: Record<string, unknown> }>;

/**
 * Gives times, durations and the like no members, whether named or computed: the library would read the JavaScript object's.
 * It passes its types to functions alone, as `this`.
 */
function closeObjects(made: Environment): void {
  const fields: Record<string, unknown> = Object.create(null);
  const close = function (this: { objectTypes: ObjectTypes; objectTypesByConstructor: ObjectTypes }) {
    for (const types of [this.objectTypes, this.objectTypesByConstructor]) {
      for (const [key, type] of types) types.set(key, { ...type, fields });
    }
    return true;
  };
  made.registerFunction("closeObjects(): bool", close).evaluate("closeObjects()");
}

function addMixedNumbers(made: Environment): Environment {
  const operators: [string, (a: number, b: number) => number][] = [
    ["+", (a, b) => a + b],
    ["-", (a, b) => a - b],
    ["*", (a, b) => a * b],
    ["/", divided],
  ];
  for (const [sign, apply] of operators) {
    made.registerOperator(`int ${sign} double`, (a: bigint, b: number) => apply(Number(a), b));
    made.registerOperator(`double ${sign} int`, (a: number, b: bigint) => apply(a, Number(b)));
  }
  made.registerOperator("double == int", (a: number, b: bigint) => a === Number(b));
  return addDivision(made);
}

function divided(a: number, b: number): number {
  if (b === 0) throw new Error("division by zero");
  return a / b;
}

/**
 * An expression of a step, that may name what all do, and `names`. @throws ExpressionProblem when the text is no expression, or one
 * that can have no value.
 */
export const parseExpression = (text: string, names: readonly string[] = []): Expression =>
  parseIn(environmentOf(names), text, names);

/** A rule. @throws ExpressionProblem likewise. */
export const parseRule = (text: string): Expression => parseIn(ofRules, text);

function parseIn(environment: Environment, text: string, names: readonly string[] = []): Expression {
  if (text.length > MAX_LENGTH) {
    throw new ExpressionProblem(`It has ${text.length} characters; ${MAX_LENGTH} is the most.`, 0);
  }
  const parsed = attempt(() => environment.parse(text), text);
  const cost = costOf(parsed.ast, (name, { range }) => {
    throw new ExpressionProblem(`"${name}" cannot be read.`, range.start);
  });
  divideAsDecimals(environment, parsed.ast);
  const known = check(parsed, text);
  return {
    ...cost,
    ...known,
    typed(schemas) {
      const isNamed = Object.keys(schemas).some((name) => cost.roots.has(name));
      const typed = isNamed ? typeInput(text, environment.parse(text).ast, schemas) : undefined;
      if (typed === undefined) return known;
      if ("problem" in typed) throw new ExpressionProblem(typed.problem, 0);
      const own = environmentOf(names, typedNames);
      const again = attempt(() => own.parse(typed.text), typed.text);
      divideAsDecimals(own, again.ast);
      return check(again, typed.text);
    },
    evaluate: (scope, room) => attempt(() => fromCel(parsed({ ...scope }), room), text),
  };
}

/** @throws ExpressionProblem for an expression that can have no value. */
function check(parsed: ReturnType<Environment["parse"]>, text: string) {
  const checked = parsed.check();
  if (!checked.valid) throw toProblem(checked.error, text);
  const type = String(checked.type);
  return { mayBeBoolean: ["bool", "dyn"].includes(type), mayBeList: type === "dyn" || type.startsWith("list") };
}

/** @throws ExpressionProblem for whatever goes wrong in `work`, which evaluates the expression `text`. */
export function attempt<T>(work: () => T, text = ""): T {
  try {
    return work();
  } catch (error) {
    throw toProblem(error, text);
  }
}

function toProblem(error: unknown, text: string): ExpressionProblem {
  if (error instanceof ExpressionProblem) return error;
  if (error instanceof NoRoom) {
    return new ExpressionProblem(`The values have more than ${MAX_VALUES} characters as JSON.`, 0);
  }
  const { message = "It cannot be evaluated.", code, range = { start: 0, end: 0 } } = Object(error) as CelError;
  const said = inOperators(message.split("\n")[0] ?? "").slice(0, SHOWN); // what follows draws the place
  return new ExpressionProblem(inWords(said, code, text.slice(0, range.end)), range.start);
}

type CelError = { message?: string; code?: string; range?: { start: number; end: number } };

/** What people who know other languages write, and what CEL has for it. */
const otherLanguages: readonly [pattern: RegExp, hint: string][] = [
  [/!==$/, "Use `!=`."],
  [/===$/, "Use `==`."],
  [/[^=!<>]=$/, "Use `==` to compare."],
  [/\band?$/i, "Use `&&`."],
  [/\bor?$/i, "Use `||`."],
  [/\bnot\b[^"']*$/i, "Use `!`."],
];

/** The message of the library, in the words of the expression; `before` is the expression up to the end of the fault. */
function inWords(message: string, code: string | undefined, before: string): string {
  switch (code) {
    case "no_such_key": {
      const path = /[A-Za-z_][\w.]*(\[("[^"]*"|'[^']*')\])?$/.exec(before)?.[0];
      return path === undefined ? message : `${path.slice(0, SHOWN)} has no value`;
    }
    case "unexpected_character": {
      const hint = otherLanguages.find(([pattern]) => pattern.test(before))?.[1];
      return hint === undefined ? message : `${message}. ${hint}`;
    }
    case "unexpected_token":
      return message.endsWith("EOF") ? "The expression ends too early" : message;
    case "no_such_overload":
      return `${message}. Convert a side, as with string(x), int(x) or double(x).`;
    default:
      return message;
  }
}
