import { isDocument } from "./bson-types.ts";
import { compareValues } from "./compare.ts";
import {
  fixed,
  isNullish,
  isTruthy,
  namedOperands,
  type OperatorCompiler,
  type OperatorTable,
  unary,
} from "./expression-arguments.ts";
import { located } from "./refusals.ts";

/** Comparisons order values of all types, and a missing field before null. */
const comparison = (holds: (order: number) => boolean) => fixed(2, 2, ([a, b]) => holds(compareValues(a, b)));

/** `$and` and `$or` stop at the first operand that decides. */
function junction(deciding: boolean): OperatorCompiler {
  return (operand, compile) => {
    const parts = (Array.isArray(operand) ? operand : [operand]).map((part: unknown) => compile(part));
    return (context) => (parts.some((part) => isTruthy(part(context)) === deciding) ? deciding : !deciding);
  };
}

const cond: OperatorCompiler = (operand, compile, name) => {
  const isList = Array.isArray(operand);
  if (isList && operand.length !== 3) {
    throw located(16020, `Expression $cond takes exactly 3 arguments. ${operand.length} were passed in.`);
  }
  const parts = isList ? operand : condParts(namedOperands(operand, { required: ["if", "then", "else"] }, name));
  const [condition, whenTrue, whenFalse] = parts.map((part: unknown) => compile(part));
  return (context) => (isTruthy(condition?.(context)) ? whenTrue?.(context) : whenFalse?.(context));
};

const condParts = (fields: Readonly<Record<string, unknown>>) => [fields.if, fields.then, fields.else];

const ifNull: OperatorCompiler = (operand, compile) => {
  if (!Array.isArray(operand) || operand.length < 2) {
    const given = Array.isArray(operand) ? operand.length : 1;
    throw located(1257300, `$ifNull needs at least two arguments, had: ${given}`);
  }
  const parts = operand.map((part: unknown) => compile(part));
  return (context) => {
    let value: unknown;
    for (const part of parts) {
      value = part(context);
      if (!isNullish(value)) break;
    }
    return value;
  };
};

const switchOperator: OperatorCompiler = (operand, compile, name) => {
  const fields = namedOperands(operand, { required: ["branches"], optional: ["default"] }, name);
  if (!Array.isArray(fields.branches)) throw located(40061, "$switch expected an array for 'branches'");
  if (fields.branches.length === 0) throw located(40068, "$switch requires at least one branch.");
  const branches = fields.branches.map((branch: unknown) => {
    if (!isDocument(branch)) throw located(40062, "$switch expected each branch to be an object");
    if (!("case" in branch)) throw located(40064, "$switch requires each branch have a 'case' expression");
    if (!("then" in branch)) throw located(40065, "$switch requires each branch have a 'then' expression.");
    return { when: compile(branch.case), result: compile(branch.then) };
  });
  const otherwise = "default" in fields ? compile(fields.default) : undefined;
  return (context) => {
    const branch = branches.find(({ when }) => isTruthy(when(context)));
    if (branch !== undefined) return branch.result(context);
    if (otherwise !== undefined) return otherwise(context);
    throw located(40066, "$switch could not find a matching branch for an input, and no default was specified.");
  };
};

const letOperator: OperatorCompiler = (operand, compile, name) => {
  const fields = namedOperands(operand, { required: ["vars", "in"] }, name);
  const vars = fields.vars;
  if (!isDocument(vars)) throw located(16876, "invalid parameter: expected an object (vars)");
  const names = Object.keys(vars);
  for (const variable of names) assertVariableName(variable);
  const values = names.map((variable) => [variable, compile(vars[variable])] as const);
  const body = compile(fields.in, names);
  return (context) => {
    const added = Object.fromEntries(values.map(([variable, value]) => [variable, value(context)]));
    return body({ ...context, variables: { ...context.variables, ...added } });
  };
};

/** Refuses the name of a user's variable that does not begin with a small letter. */
export function assertVariableName(variable: string): void {
  if (/^[a-z][\w]*$/.test(variable) || (variable.codePointAt(0) ?? 0) > 0x7f) return;
  throw located(16867, `'${variable}' starts with an invalid character for a user variable name`);
}

export const logicOperators: OperatorTable = {
  $eq: comparison((order) => order === 0),
  $ne: comparison((order) => order !== 0),
  $gt: comparison((order) => order > 0),
  $gte: comparison((order) => order >= 0),
  $lt: comparison((order) => order < 0),
  $lte: comparison((order) => order <= 0),
  $cmp: fixed(2, 2, ([a, b]) => compareValues(a, b)),
  $and: junction(false),
  $or: junction(true),
  $not: unary((value) => !isTruthy(value)),
  $cond: cond,
  $ifNull: ifNull,
  $switch: switchOperator,
  $let: letOperator,
  $literal: (operand) => () => operand,
};
