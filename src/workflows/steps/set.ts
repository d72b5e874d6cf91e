import { z } from "zod";
import { commonFields, stepKind } from "./step.ts";

/** Gives names to values. */
export const set = stepKind({
  schema: z.strictObject({
    type: z.literal("set"),
    ...commonFields,
    values: z.record(z.string(), z.unknown()).describe("A text that is one expression keeps the type of its value"),
  }),
  summary: "values (an object; later steps read `steps.<id>.output.<name>`)",
  fields: ({ values }) => [{ at: "values", value: values, kind: "value" }],
  attempts: 1,
  run: async ({ fill }) => ({ output: (await fill()).values }),
});
