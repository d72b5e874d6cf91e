import type { Document } from "bson";
import { isDocument } from "./bson-types.ts";
import { numberKind, toDouble } from "./numbers.ts";
import { failedToParse, located } from "./refusals.ts";

/** What an expression is evaluated against: the document, the variables of `$let` and its like, and one clock. */
export type EvaluationContext = {
  readonly root: Document;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly now: Date;
};

/** The variables and the clock of the pipeline in which an expression stands. */
export type OuterContext = Pick<EvaluationContext, "variables" | "now">;

/** A compiled expression. Its value is undefined where MongoDB's is missing. */
export type Expression = (context: EvaluationContext) => unknown;

/** Compiles an operand; `variables` are names that it may use in addition to those already in scope. */
export type CompileOperand = (operand: unknown, variables?: readonly string[]) => Expression;

/** Makes the expression of one operator, or throws for operands that it cannot have. */
export type OperatorCompiler = (operand: unknown, compile: CompileOperand, name: string) => Expression;

export type OperatorTable = Readonly<Record<string, OperatorCompiler>>;

/** An operator of exactly one operand, given bare or as an array of one. */
export function unary(run: (value: unknown, name: string, context: EvaluationContext) => unknown): OperatorCompiler {
  return (operand, compile, name) => {
    const [only, ...more] = Array.isArray(operand) ? operand : [operand];
    if (more.length > 0 || (Array.isArray(operand) && operand.length === 0)) throw wrongCount(name, 1, operand);
    const argument = compile(only);
    return (context) => run(argument(context), name, context);
  };
}

/** An operator of `least` to `most` operands, all evaluated before it runs. */
export function fixed(
  least: number,
  most: number,
  run: (values: unknown[], name: string) => unknown,
): OperatorCompiler {
  return (operand, compile, name) => {
    const operands: readonly unknown[] = Array.isArray(operand) ? operand : [operand];
    if (operands.length < least || operands.length > most) throw wrongCount(name, [least, most], operand);
    const parts = operands.map((part) => compile(part));
    return (context) => run(evaluateAll(parts, context), name);
  };
}

/** An operator of any number of operands. */
export function variadic(run: (values: unknown[], name: string) => unknown): OperatorCompiler {
  return fixed(0, Number.POSITIVE_INFINITY, run);
}

/** An operator with named operands, all evaluated before it runs; a name that is not on the list is refused. */
export function named(
  names: { required: readonly string[]; optional?: readonly string[] },
  run: (values: Readonly<Record<string, unknown>>, name: string) => unknown,
): OperatorCompiler {
  return (operand, compile, name) => {
    const fields = namedOperands(operand, names, name);
    const parts = Object.entries(fields).map(([field, part]) => [field, compile(part)] as const);
    return (context) => run(Object.fromEntries(parts.map(([field, part]) => [field, part(context)])), name);
  };
}

/** The named operands of an operator, checked against the names that it has. */
export function namedOperands(
  operand: unknown,
  names: { required: readonly string[]; optional?: readonly string[] },
  name: string,
): Readonly<Record<string, unknown>> {
  if (!isDocument(operand)) throw failedToParse(`${name} only supports an object as its argument`);
  const known = [...names.required, ...(names.optional ?? [])];
  const stranger = Object.keys(operand).find((field) => !known.includes(field));
  if (stranger !== undefined) throw failedToParse(`Unrecognized argument to ${name}: ${stranger}`);
  const missing = names.required.find((field) => !(field in operand));
  if (missing !== undefined) throw failedToParse(`Missing '${missing}' parameter to ${name}`);
  return operand;
}

function evaluateAll(parts: readonly Expression[], context: EvaluationContext): unknown[] {
  return parts.map((part) => part(context));
}

function wrongCount(name: string, expected: number | readonly [number, number], operand: unknown): Error {
  const given = Array.isArray(operand) ? operand.length : 1;
  const [least, most] = typeof expected === "number" ? [expected, expected] : expected;
  if (least === most)
    return located(16020, `Expression ${name} takes exactly ${least} arguments. ${given} were passed in.`);
  return located(
    28667,
    `Expression ${name} takes at least ${least} arguments, and at most ${most}, but ${given} were passed in.`,
  );
}

/** Whether a value is null or missing, which most operators answer with null. */
export function isNullish(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

/** The context of a document, with the variables of an outer pipeline if there is one. */
export function rootContext(root: Document, outer?: OuterContext): EvaluationContext {
  return { root, variables: outer?.variables ?? {}, now: outer?.now ?? new Date() };
}

/** What counts as true: everything but false, null, missing and zero. */
export function isTruthy(value: unknown): boolean {
  if (value === undefined || value === null || value === false) return false;
  return numberKind(value) === undefined || toDouble(value) !== 0;
}
