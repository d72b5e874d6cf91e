import { invalidRequest } from "../lib/errors.ts";
import type { Room } from "./cel-values.ts";
import { isQuick } from "./expression-cost.ts";
import { attempt, type Expression, ExpressionProblem, makeRoom, type Scope } from "./expressions.ts";
import type { GivenInput } from "./given-inputs.ts";
import { checkGiven, checkInput, checkInputSchema } from "./input-schemas.ts";
import type { Schemas } from "./known-schemas.ts";
import { type ScopeTexts, selectScope, toScope } from "./scope-texts.ts";
import { inField, mapTexts, type StepField, textsOf } from "./step-texts.ts";
import type { ParsedTexts } from "./templates.ts";

/** Expressions of one definition. */
const MAX_EXPRESSIONS = 1_000;

/** Fills the expressions of a step's fields; `field` is the step's own, as `steps[0]`. */
export type Fill = { kind: "fill"; field: string; fields: StepField[]; scope: ScopeTexts };
/** The expressions of a step; `known`: the steps that they may read; `names`: what they see besides, as the item of a list. */
export type StepTexts = { field: string; fields: StepField[]; known: readonly string[]; names?: readonly string[] } & {
  /** What is known of these names. */
  schemas?: Schemas;
};
/** Checks the expressions and the input schema of a definition. */
export type CheckDefinition = {
  kind: "check-definition";
  steps: StepTexts[];
  inputSchema?: Record<string, unknown>;
};
/** Checks an input against its schema. */
export type CheckInput = { kind: "check-input"; inputSchema: Record<string, unknown>; input: unknown };
/** Checks what is known beforehand of an input of another workflow's run; `field` is that of the step. */
export type CheckGiven = {
  kind: "check-given";
  inputSchema: Record<string, unknown>;
  given: GivenInput;
  field: string;
};

/** What tenants have written, to be evaluated: data in, data out. */
export type Evaluation = Fill | CheckDefinition | CheckInput | CheckGiven;

/** The work may not be done at this place. */
export class NotHere extends Error {
  override name = "NotHere";
}

/** Where work is done, and how far it has come, for the code that stops it. */
export type Place = {
  parsed: ParsedTexts;
  /** What may be evaluated here: anything, what no operation of can take long, or nothing. */
  allows: "anything" | "quick" | "nothing";
  /** The field that is evaluated. */
  at: string;
  /** The work as it is to be done elsewhere. */
  left: Evaluation;
};

/** Does the work; all its effect is its answer: for `fill` the values by field. @throws AppError `invalid_request`; NotHere. */
export function evaluate(work: Evaluation, place: Place): unknown {
  if (work.kind !== "fill" && place.allows === "nothing") throw new NotHere();
  switch (work.kind) {
    case "fill":
      return fill(work, place);
    case "check-definition":
      return checkDefinition(work, place);
    case "check-input":
      place.at = "input";
      return checkInput(work.inputSchema, work.input);
    case "check-given":
      place.at = `${work.field}.input`;
      return checkGiven(work.inputSchema, work.given, work.field);
    default:
      return work satisfies never;
  }
}

function fill(work: Fill, place: Place): Record<string, unknown> {
  const names = Object.keys(work.scope.values ?? {});
  const expressions = work.fields
    .flatMap((field) => parseField(field, work.field, { place, names }))
    .flatMap((text) => text.expressions);
  const scope = inField(place.at, () => {
    const { selected, characters } = selectScope(work.scope, expressions);
    place.left = { ...work, scope: selected };
    if (place.allows === "nothing") throw new NotHere();
    if (place.allows === "quick" && !expressions.every((one) => isQuick(one, characters))) throw new NotHere();
    return attempt(() => toScope(selected));
  });
  const room = makeRoom();
  const filled = work.fields.map((field) => [field.at, fillField(field, { work, scope, room, place })] as const);
  return Object.fromEntries(filled);
}

/** The expressions of a field, by the text that they stand in. */
function parseField(
  field: StepField,
  step: string,
  { place, names }: { place: Place; names: readonly string[] | undefined },
) {
  place.at = `${step}.${field.at}`;
  return inField(place.at, () => textsOf(field)).map(({ at, text, parsedAs }) => {
    const param = `${step}.${at}`;
    place.at = param;
    const parsed = names?.length ? place.parsed.within(names) : place.parsed;
    const parse = () => (parsedAs === "template" ? parsed.template(text).expressions : [parsed[parsedAs](text)]);
    return { param, expressions: inField(param, parse) };
  });
}

function fillField(
  { at, value, kind }: StepField,
  { work, scope, room, place }: { work: Fill; scope: Scope; room: Room; place: Place },
): unknown {
  const { values } = work.scope;
  const parsed = values === undefined ? place.parsed : place.parsed.within(Object.keys(values));
  return mapTexts(value, at, (text, here) => {
    place.at = `${work.field}.${here}`;
    return inField(place.at, () => {
      if (kind === "condition" || kind === "expression") return parsed.condition(text).evaluate(scope, room);
      if (kind === "rule" || kind === "rule-value") return parsed.rule(text).evaluate(scope, room);
      if (!text.includes("{{")) return text;
      const template = parsed.template(text);
      if (kind === "url") return template.fillUrl(scope, room);
      return kind === "text" ? template.fillText(scope, room) : template.fillValue(scope, room);
    });
  });
}

function checkDefinition({ steps, inputSchema }: CheckDefinition, place: Place): void {
  place.at = "inputSchema";
  if (inputSchema !== undefined) checkInputSchema(inputSchema);
  let count = 0;
  for (const { field, fields, known, names, schemas: own } of steps) {
    const schemas = { ...(inputSchema && { input: inputSchema }), ...own };
    for (const one of fields) {
      for (const { param, expressions } of parseField(one, field, { place, names })) {
        checkExpressions(expressions, {
          param,
          known: new Set(known),
          kind: one.kind,
          schemas,
        });
        count += expressions.length;
      }
    }
    if (count > MAX_EXPRESSIONS) {
      throw invalidRequest("steps", `The definition has more than ${MAX_EXPRESSIONS} expressions.`);
    }
  }
}

type Checking = {
  param: string;
  known: ReadonlySet<string>;
  kind: StepField["kind"];
  schemas: Schemas;
};

function checkExpressions(expressions: readonly Expression[], { param, known, kind, schemas }: Checking): void {
  const isTyped = Object.keys(schemas).length > 0;
  const values = isTyped ? inField(param, () => expressions.map((one) => one.typed(schemas))) : expressions;
  const wrong = (message: string) => {
    inField(param, () => {
      throw new ExpressionProblem(message, 0);
    });
  };
  const isCondition = kind === "condition" || kind === "rule";
  if (isCondition && !values.every((one) => one.mayBeBoolean)) wrong("Its value is neither true nor false.");
  if (kind === "expression" && !values.every((one) => one.mayBeList)) wrong("Its value is no list.");
  const unknown = expressions.flatMap(({ stepIds }) => stepIds).find((id) => !known.has(id));
  if (unknown !== undefined)
    throw invalidRequest(param, `It names steps.${unknown}, which is no step before this one.`);
}
