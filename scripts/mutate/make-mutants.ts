import { type Argument, type Expression, type Node, type Program, parseSync, Visitor } from "oxc-parser";

/** One small change of a source file. `from` and `to` are its text before and after; offsets are in UTF-16 units. */
export type Mutant = {
  file: string;
  line: number;
  source: string;
  start: number;
  end: number;
  from: string;
  to: string;
};
type Edit = Pick<Mutant, "start" | "end" | "to">;

/** What an operator or a method is turned into. */
const turned = new Map<string | undefined, string>(
  Object.entries({
    ...{ "<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "===" },
    ...{ "+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+=" },
    ...{ min: "max", max: "min", some: "every", every: "some" },
  }),
);

/**
 * Every mutant of a TypeScript source: conditions forced, operands dropped, comparisons turned, statements and the
 * properties of objects removed, literals changed. Calls of a logger and definitions of indexes are left alone.
 * @throws Error when the source cannot be parsed.
 */
export function makeMutants(file: string, text: string): Mutant[] {
  const { program, errors } = parseSync(file, text);
  if (errors[0]) throw new Error(`${file}: ${errors[0].message}`);
  return editsOf(program, text).map((edit) => {
    const line = text.slice(0, edit.start).split("\n").length;
    const source = (text.split("\n")[line - 1] ?? "").trim();
    const from = text.slice(edit.start, edit.end).replace(/\s+/g, " ").trim();
    return { file, line, source, from, ...edit };
  });
}

function editsOf(program: Program, text: string): Edit[] {
  const edits = new Map<string, Edit>();
  const ignored: { start: number; end: number }[] = [];
  const inner = new Set<Node>();
  const add = (node: { start: number; end: number }, to: string) => {
    const { start, end } = node;
    edits.set(`${start} ${end} ${to}`, { start, end, to });
  };
  const codeOf = ({ start, end }: Node) => text.slice(start, end);
  const force = (test: Expression) => {
    for (const to of ["true", "false"]) add(test, to);
  };
  const changeLiteral = (node: Node) => {
    if (node.type !== "Literal") return;
    if (typeof node.value === "boolean") add(node, String(!node.value));
    if (typeof node.value === "number") add(node, node.value === 1 ? "0" : String(node.value + 1));
    if (typeof node.value === "string" && !node.value.includes(" ")) add(node, '"mutated"'); // others are messages
  };
  const turn = (before: Node, operator: string, after: Node) => {
    const to = turned.get(operator);
    const gap = { start: before.end, end: after.start };
    if (to) add(gap, text.slice(gap.start, gap.end).replace(operator, to));
  };
  const removeEach = (list: readonly (Node | null)[]) => {
    for (const [at, node] of list.entries()) {
      if (!node || isKept(node)) continue;
      const [before, after] = [list[at - 1], list[at + 1]];
      add({ start: after ? node.start : (before?.end ?? node.start), end: after ? after.start : node.end }, "");
    }
  };
  const changeArguments = (list: readonly Argument[]) => list.forEach(changeLiteral);
  new Visitor({
    IfStatement: ({ test }) => force(test),
    ConditionalExpression: ({ test }) => force(test),
    LogicalExpression(node) {
      for (const side of [node.left, node.right]) add(node, codeOf(side));
    },
    BinaryExpression({ left, operator, right }) {
      turn(left, operator, right);
      if (!/[!=]==/.test(operator)) changeLiteral(right);
    },
    AssignmentExpression: ({ left, operator, right }) => turn(left, operator, right),
    UnaryExpression(node) {
      if (node.operator === "!") add(node, codeOf(node.argument));
    },
    ExpressionStatement(node) {
      if (!("directive" in node) || !node.directive) add(node, ";");
    },
    ThrowStatement: (node) => add(node, ";"),
    ContinueStatement: (node) => add(node, ";"),
    ReturnStatement({ argument }) {
      if (argument) changeLiteral(argument);
    },
    ObjectExpression(node) {
      if (!inner.has(node)) removeEach(node.properties);
    },
    Property({ value }) {
      if (value.type === "ObjectExpression" && value.properties.length === 1) inner.add(value); // goes as a whole
      if (value.type === "Literal" && typeof value.value !== "string") changeLiteral(value); // a text's removal is enough
    },
    ArrayExpression: ({ elements }) => removeEach(elements),
    NewExpression: (node) => changeArguments(node.arguments),
    CallExpression(node) {
      const { callee } = node;
      if (/\blogger\.\w+$|^defineCollection$/.test(codeOf(callee))) ignored.push(node);
      changeArguments(node.arguments);
      if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return;
      const to = turned.get(callee.property.name);
      if (to) add(callee.property, to);
    },
  }).visit(program);
  const isIgnored = ({ start, end }: Edit) => ignored.some((call) => call.start <= start && end <= call.end + 1);
  return [...edits.values()].filter((edit) => !isIgnored(edit)).sort((a, b) => a.start - b.start);
}

/** A method is called or unused; a conditional part is forced both ways. */
function isKept(node: Node): boolean {
  if (node.type === "SpreadElement") return /^(Parenthesized|Conditional)Expression$/.test(node.argument.type);
  return node.type === "Property" && /Function/.test(node.value.type);
}

/** The source with one mutant in it. */
export function applyMutant(text: string, { start, end, to }: Edit): string {
  return text.slice(0, start) + to + text.slice(end);
}
