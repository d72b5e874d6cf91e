import { z } from "zod";
import { evaluateArithmetic } from "./arithmetic.ts";
import { defineTool, toolKind } from "./tool.ts";

/** Computes arithmetic expressions. */
export const calculator = toolKind({
  schema: z.strictObject({}).default({}),
  make: (_, setup) =>
    defineTool(setup, {
      description:
        "Computes an arithmetic expression: + - * / % ^, parentheses, pi, e, and functions as sqrt, round, min, max, ln, log10, sin.",
      input: z.object({ expression: z.string().min(1).max(1_000).describe("As (2 + 3) * 4^2") }),
      timeoutMs: 1_000,
      run: ({ expression }) => String(evaluateArithmetic(expression)),
    }),
});
