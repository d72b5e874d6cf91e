import type { ASTNode } from "@marcbachmann/cel-js";

/** What an expression reads, and what can be said of its cost before it is evaluated. */
export type ExpressionCost = {
  /** Ids that it names as `steps.<id>` or `steps["<id>"]`. */
  stepIds: readonly string[];
  /** Names among `input`, `steps`, `previous` and `run`; `steps` only where it is used as a whole. */
  roots: ReadonlySet<string>;
  /** How often values are added up at most; each time texts and lists may grow. */
  additions: number;
  /** Whether it loops, or calls what may look at a value more than once. */
  repeats: boolean;
};

/** Calls that take time in proportion to the values that they are called with, and build nothing larger. */
const linearCalls = new Set(
  "size has int uint double div string bool type dyn timestamp duration startsWith endsWith trim lowerAscii upperAscii substring at of none value hasValue or orValue".split(
    " ",
  ),
);
/** Calls that repeat work, and build nothing larger than what they are called with. Any other call may do both. */
const repeatingCalls = new Set(
  "all exists exists_one map filter contains indexOf lastIndexOf split matches".split(" "),
);
/** The library's own namespace. */
const rejectedRoot = "google";

/** Longest text that anything may be done with inline, in characters; and one that may be looked at again and again. */
const MAX_INLINE = 500_000;
const MAX_INLINE_REPEATED = 8_000;

/** Whether every operation of an expression over values of `characters` in total is quick. */
export function isQuick({ additions, repeats }: ExpressionCost, characters: number): boolean {
  if (repeats) return additions === 0 && characters <= MAX_INLINE_REPEATED;
  return (additions + 1) * characters <= MAX_INLINE;
}

/** @param reject is called with each name that no expression may use. */
export function costOf(tree: ASTNode, reject: (name: string, node: ASTNode) => void): ExpressionCost {
  const stepIds: string[] = [];
  const roots = new Set<string>();
  const cost = { additions: 0, repeats: false };
  const visit = (node: ASTNode) => {
    const { op, args } = node;
    if (op === "id" && args === rejectedRoot) reject(args, node);
    if (op === "id") roots.add(args);
    if (op === "+") cost.additions += 1;
    if (op === "call" || op === "rcall") {
      const [name] = args;
      if (repeatingCalls.has(name)) cost.repeats = true;
      else if (!linearCalls.has(name) && !name.startsWith("get")) Object.assign(cost, { repeats: true, additions: 1 });
    }
    const named = nameIn(node);
    if (named?.of.op === "id" && named.of.args === "steps") stepIds.push(named.name);
    else for (const child of childNodes(args)) visit(child);
  };
  visit(tree);
  return { stepIds, roots, ...cost };
}

/** The member that a node reads, where its name is written down. */
export function nameIn({ op, args }: ASTNode): { of: ASTNode; name: string } | undefined {
  if (op !== "." && op !== ".?" && op !== "[]" && op !== "[?]") return undefined;
  const [of, key] = args;
  const name = typeof key === "string" ? key : key.op === "value" ? key.args : undefined;
  return typeof name === "string" ? { of, name } : undefined;
}

/** The nodes among the arguments of one. */
export function childNodes(args: unknown): ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(childNodes);
  return typeof args === "object" && args !== null && "op" in args ? [args as ASTNode] : []; // the only objects with an `op`
}
