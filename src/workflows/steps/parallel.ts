import { z } from "zod";
import { type CommonFields, commonFields, type StepKind } from "./step.ts";

/** How many branches a step has at most. */
const MAX_BRANCHES = 20;
const branchName = /^[a-z0-9_]{1,64}$/;

/** Branches that hold steps of type `S`. */
export type Parallel<S> = CommonFields & { type: "parallel"; branches: Record<string, S[]> };

/** Walks through several lists of steps at the same time; `nested` is the schema of such a list. */
export function makeParallel<S>(nested: z.ZodType<S[]>): StepKind<Parallel<S>> {
  const schema = z.strictObject({
    type: z.literal("parallel"),
    ...commonFields,
    branches: z
      .record(z.string().regex(branchName, "must be 1 to 64 of a to z, 0 to 9 and _"), nested)
      .refine((branches) => Object.keys(branches).length > 0, "has no branch")
      .refine((branches) => Object.keys(branches).length <= MAX_BRANCHES, `has more than ${MAX_BRANCHES} branches`),
  });
  return {
    schema,
    summary: "branches (an object of lists of steps)",
    fields: () => [],
    nests: ["branches"],
    attempts: 1, // the steps within have attempts of their own
    async run({ step, nested: within }) {
      const outputs = new Map<string, unknown>();
      const names = Object.keys(step.branches);
      const tasks = names.map((name) => async (signal: AbortSignal) => {
        outputs.set(name, JSON.parse((await within.walkBranch(`branches/${name}`, signal)).output));
      });
      await within.all(tasks, names.length);
      return { output: Object.fromEntries(names.map((name) => [name, outputs.get(name)])) };
    },
  };
}
