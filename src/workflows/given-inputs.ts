import { isSchema, type Schemas, schemaOf } from "./known-schemas.ts";
import { mapTexts } from "./step-texts.ts";

/**
 * An input for a run that is to be started, as far as it is known beforehand. `open`: the places of values that only a run has, each with
 * whether its type is known; in its place stands a value of that type.
 */
export type GivenInput = { value: unknown; open: { at: string; isTyped: boolean }[] };

const onlyExpression = /^\s*\{\{(?<expression>[^{}]*)\}\}\s*$/;
/** A value of each type of which a value is of no other type. */
const samples: Readonly<Record<string, unknown>> = {
  string: "",
  integer: 0,
  number: 0,
  boolean: false,
  array: [],
  object: {},
};

/** What is known of the `input` of a step, whose texts may hold expressions. */
export function toGivenInput(input: unknown, schemas: Schemas): GivenInput {
  const open: GivenInput["open"] = [];
  const value = mapTexts(input ?? null, "input", (text, at) => {
    if (!text.includes("{{")) return text;
    const { expression } = onlyExpression.exec(text)?.groups ?? {};
    const type = expression === undefined ? "string" : schemaOf(expression, schemas)?.type;
    const isTyped = typeof type === "string" && Object.hasOwn(samples, type);
    open.push({ at, isTyped });
    return isTyped ? samples[type] : null;
  });
  return { value, open };
}

type Issue = { path: readonly PropertyKey[]; code?: string | undefined };

/** Whether a problem of such an input is one whatever the run brings: not one of what is open, or that may be. */
export function isCertain({ path, code }: Issue, { open }: GivenInput): boolean {
  const at = `input${toPath(path)}`;
  for (const one of open) {
    if (one.at === at) return one.isTyped && code === "invalid_type";
    if (isWithin(at, one.at)) return false;
    if (isWithin(one.at, at) && !shallow.has(code ?? "")) return false;
  }
  return true;
}

/** Problems of a value itself, whatever is in its parts. */
const shallow = new Set(["invalid_type", "unrecognized_keys", "too_small", "too_big"]);

const isWithin = (at: string, outer: string) => at.startsWith(`${outer}.`) || at.startsWith(`${outer}[`);

export const toPath = (path: readonly PropertyKey[]) =>
  path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");

/** The schemas of the names of an item, and of its place, by the schema of its list. */
export function schemasOfItem(name: string, list: unknown): Schemas {
  const item = isSchema(list) && list.type === "array" && isSchema(list.items) ? { [name]: list.items } : {};
  return { ...item, [`${name}_index`]: { type: "integer" } };
}
