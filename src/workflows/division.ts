import type { ASTNode, Environment } from "@marcbachmann/cel-js";
import { childNodes } from "./expression-cost.ts";

/** The function that stands around the left side of each `/`; no expression names it. */
const DECIMAL = "decimalOf";

/**
 * Makes `/` the division of decimals, whatever its sides are: JSON has one kind of number, so that 7 / 2 is 3.5 as 7.5 / 2 is 3.75.
 * `div(a, b)` is the division of whole numbers.
 */
export function addDivision(made: Environment): Environment {
  const whole = (value: bigint | number) => (typeof value === "bigint" ? value : BigInt(Math.trunc(value)));
  const divide = (a: bigint | number, b: bigint | number) => {
    if (whole(b) === 0n) throw new Error("division by zero");
    return whole(a) / whole(b);
  };
  for (const [a, b] of [
    ["int", "int"],
    ["int", "double"],
    ["double", "int"],
    ["double", "double"],
  ]) {
    made.registerFunction(`div(${a}, ${b}): int`, divide);
  }
  made.registerFunction(`${DECIMAL}(int): double`, (a: bigint) => Number(a));
  made.registerFunction(`${DECIMAL}(double): double`, (a: number) => a);
  made.registerFunction(`${DECIMAL}(uint): uint`, (a: unknown) => a);
  return made;
}

/** What the library's nodes have besides their types: the way in which it makes nodes of its own. */
type MakingNode = { meta: object; clone(op: object, args: unknown): ASTNode };

/** Makes the left side of each `/` in a parsed expression a decimal: the library's own division of whole numbers stays as it is. */
export function divideAsDecimals(made: Environment, tree: ASTNode): void {
  const { meta } = made.parse(`${DECIMAL}(1)`).ast as unknown as MakingNode;
  const visit = (node: ASTNode) => {
    for (const child of childNodes(node.args)) visit(child);
    if (node.op !== "/") return;
    const [left, right] = node.args;
    const decimal = (left as unknown as MakingNode).clone({ name: "call", ...meta }, [DECIMAL, [left]]);
    Reflect.set(node, "args", [decimal, right]);
  };
  visit(tree);
}

/** A message of the library, by the operator that its reader has written. */
export const inOperators = (message: string) =>
  message.replace(
    new RegExp(`^found no matching overload for '${DECIMAL}\\((.*)\\)'`),
    "no such overload: $1 / number",
  );
