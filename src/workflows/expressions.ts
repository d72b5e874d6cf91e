import { type ASTNode, Environment } from "@marcbachmann/cel-js";
import { fromCel, toCel } from "./cel-values.ts";
import { isOutOfTime, withinTime } from "./within-time.ts";

/** Longest time that one expression may take, in ms. */
const TIME_LIMIT_MS = 50;
/** Longest value that one expression may give, in characters of JSON. */
const MAX_RESULT = 512_000;
/** How much of a text a message repeats. */
const SHOWN = 200;

/** What expressions see. Values are as CEL has them; see `makeScope`. */
export type Scope = Readonly<Record<"input" | "steps" | "previous" | "run", unknown>>;

/** What is wrong with an expression, fit for who wrote it. `position` counts characters from 0. */
export class ExpressionProblem extends Error {
  override name = "ExpressionProblem";
  readonly position: number;

  constructor(message: string, position: number) {
    super(message);
    this.position = position;
  }
}

export type Expression = {
  /** Ids that it names as `steps.<id>` or `steps["<id>"]`. */
  stepIds: readonly string[];
  /** Whether its value can be true or false, as far as can be told before it is evaluated. */
  mayBeBoolean: boolean;
  /** The value, as JSON has it. @throws ExpressionProblem. */
  evaluate(scope: Scope): unknown;
};

/**
 * The Common Expression Language (https://github.com/google/cel-spec) over `input`, `steps`, `previous` and `run`. Its size is
 * bounded when it is parsed, its cost when it is evaluated. Numbers of both kinds mix, since JSON has but one.
 */
const environment = addMixedNumbers(
  new Environment({
    homogeneousAggregateLiterals: false,
    enableOptionalTypes: true,
    limits: { maxAstNodes: 1_000, maxDepth: 40, maxListElements: 200, maxMapEntries: 200, maxCallArguments: 16 },
  })
    .registerVariable("input", "dyn")
    .registerVariable("steps", "map")
    .registerVariable("previous", "dyn")
    .registerVariable("run", "map"),
);

function addMixedNumbers(made: Environment): Environment {
  const operators: [string, (a: number, b: number) => number][] = [
    ["+", (a, b) => a + b],
    ["-", (a, b) => a - b],
    ["*", (a, b) => a * b],
    ["/", (a, b) => a / b],
  ];
  for (const [sign, apply] of operators) {
    made.registerOperator(`int ${sign} double`, (a: bigint, b: number) => apply(Number(a), b));
    made.registerOperator(`double ${sign} int`, (a: number, b: bigint) => apply(a, Number(b)));
  }
  return made;
}

/** @throws ExpressionProblem when the text is no expression, or one that can have no value. */
export function parseExpression(text: string): Expression {
  const parsed = attempt(() => environment.parse(text));
  const checked = parsed.check();
  if (!checked.valid) throw toProblem(checked.error);
  return {
    stepIds: [...findStepIds(parsed.ast)],
    mayBeBoolean: ["bool", "dyn"].includes(String(checked.type)),
    evaluate(scope) {
      const value = attempt(() => withinTime(TIME_LIMIT_MS, () => fromCel(parsed({ ...scope }))));
      const length = JSON.stringify(value ?? null).length;
      if (length > MAX_RESULT)
        throw new ExpressionProblem(`The value has ${length} characters as JSON; ${MAX_RESULT} is the most.`, 0);
      return value;
    },
  };
}

/** What does not change in the course of a run, as CEL has it; the outputs of steps are added as they come. */
export function makeScope({ input, run }: { input: unknown; run: object }): Pick<Scope, "input" | "run"> {
  return { input: toCel(input), run: toCel(run) };
}

function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw toProblem(error);
  }
}

function toProblem(error: unknown): ExpressionProblem {
  if (error instanceof ExpressionProblem) return error;
  if (isOutOfTime(error)) return new ExpressionProblem(`It takes longer than ${TIME_LIMIT_MS} ms.`, 0);
  const { message = "It cannot be evaluated.", range } = Object(error) as {
    message?: string;
    range?: { start: number };
  };
  return new ExpressionProblem((message.split("\n")[0] ?? "").slice(0, SHOWN), range?.start ?? 0); // what follows draws the place
}

/** Names of steps in a tree, without recursion into what is no node. */
function* findStepIds(node: ASTNode): Generator<string> {
  const { op, args } = node;
  if (op === "." || op === ".?" || op === "[]" || op === "[?]") {
    const [of, key] = args;
    const name = typeof key === "string" ? key : key.op === "value" ? key.args : undefined;
    if (of.op === "id" && of.args === "steps" && typeof name === "string") yield name;
  }
  for (const child of childNodes(args)) yield* findStepIds(child);
}

function childNodes(args: unknown): ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(childNodes);
  return typeof args === "object" && args !== null && "op" in args ? [args as ASTNode] : []; // the only objects with an `op`
}
