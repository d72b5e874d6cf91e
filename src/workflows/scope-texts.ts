import { toCel } from "./cel-values.ts";
import type { ExpressionCost } from "./expression-cost.ts";
import { ExpressionProblem, type Scope } from "./expressions.ts";

/** A JSON value as text. */
export type JsonValue = { readonly text: string };

/** What expressions see of a step that has ended; `finishReason` of one that asked a model; `error` of one that failed. */
export type StepText = {
  status: string;
  output: JsonValue;
  finishReason?: string;
  error?: { code: string; message: string };
};

/** What expressions may read, as JSON: nothing is converted before an expression needs it, and it passes to other processes. */
export type ScopeTexts = {
  input: JsonValue;
  run: JsonValue;
  previous: JsonValue;
  steps: ReadonlyMap<string, StepText>;
  /** What a rule sees besides, or a step within a list over items, by its name. */
  values?: Readonly<Record<string, JsonValue>>;
};

/** Longest values that one step may read, in characters of JSON. */
const MAX_SCOPE = 16_000_000;

const nothing: JsonValue = { text: "null" };

/** The scope of what is no part of a run. */
export const noScope: ScopeTexts = { input: nothing, run: nothing, previous: nothing, steps: new Map() };

export const toJsonValue = (text: string | undefined): JsonValue => (text === undefined ? nothing : { text });

/** The part of a scope that expressions read, and its length in characters. */
type Selected = { selected: ScopeTexts; characters: number };

/** The part of a scope that expressions read. @throws ExpressionProblem when that is too long. */
export function selectScope(scope: ScopeTexts, expressions: readonly ExpressionCost[]): Selected {
  const found = findRead(scope, expressions);
  if (found.characters <= MAX_SCOPE) return found;
  throw new ExpressionProblem(
    `The values that it reads have ${found.characters} characters; ${MAX_SCOPE} is the most.`,
    0,
  );
}

/** The same, however long it is. */
export function findRead(
  { input, run, previous, steps, values: named = {} }: ScopeTexts,
  expressions: readonly ExpressionCost[],
): Selected {
  const isRead = (root: string) => expressions.some(({ roots }) => roots.has(root));
  const ids = new Set(isRead("steps") ? steps.keys() : expressions.flatMap(({ stepIds }) => stepIds));
  const selected = {
    input: isRead("input") ? input : nothing,
    run: isRead("run") ? run : nothing,
    previous: isRead("previous") ? previous : nothing,
    steps: new Map([...steps].filter(([id]) => ids.has(id))),
    values: Object.fromEntries(Object.entries(named).filter(([name]) => isRead(name))),
  };
  const outputs = [...selected.steps.values()].map(({ output }) => output);
  const rest = Object.values(selected.values);
  const values = [selected.input, selected.run, selected.previous, ...outputs, ...rest];
  return { selected, characters: values.reduce((sum, { text }) => sum + text.length, 0) };
}

/** The scope as CEL has it; of the same values only once. */
export function toScope({ input, run, previous, steps, values = {} }: ScopeTexts): Scope {
  const celOfStep = ({ output, error, ...about }: StepText) =>
    new Map(Object.entries({ output: celOf(output), ...about, ...(error ? { error: toCel(error) } : {}) }));
  return {
    input: celOf(input),
    run: celOf(run),
    previous: celOf(previous),
    steps: new Map([...steps].map(([id, step]) => [id, celOfStep(step)])),
    ...Object.fromEntries(Object.entries(values).map(([name, value]) => [name, celOf(value)])),
  };
}

const cels = new WeakMap<JsonValue, { cel: unknown }>();

function celOf(value: JsonValue): unknown {
  const known = cels.get(value) ?? { cel: toCel(JSON.parse(value.text)) };
  cels.set(value, known);
  return known.cel;
}
