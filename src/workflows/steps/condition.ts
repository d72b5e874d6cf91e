import { z } from "zod";
import { AppError } from "../../lib/errors.ts";
import { type CommonFields, commonFields, type StepKind } from "./step.ts";

/** A condition whose branches hold steps of type `S`. */
export type Condition<S> = CommonFields & { type: "condition"; expression: string; then: S[]; else: S[] };

/** Chooses between two lists of steps; `nested` is the schema of such a list. */
export function makeCondition<S>(nested: z.ZodType<S[]>): StepKind<Condition<S>> {
  const schema = z.strictObject({
    type: z.literal("condition"),
    ...commonFields,
    expression: z.string().min(1).max(10_000),
    // biome-ignore lint/suspicious/noThenProperty: the interface names it so, and it is no function
    then: nested,
    else: nested.default([]),
  });
  return {
    schema,
    summary: "expression, then (steps), else? (steps)",
    fields: ({ expression }) => [{ at: "expression", value: expression, kind: "condition" }],
    nests: ["then", "else"],
    effect: (output) => ({ branch: String(Object(output).branch) }),
    isSilent: true,
    async run({ place, fill }) {
      const { expression: value } = await fill();
      if (typeof value === "boolean") return { output: { branch: value ? "then" : "else" } };
      throw new AppError("invalid_request", "The expression's value is neither true nor false.", {
        param: `${place.field}.expression`,
        details: { type: value === null ? "null" : Array.isArray(value) ? "list" : typeof value },
      });
    },
  };
}
