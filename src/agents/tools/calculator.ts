import { z } from "zod";
import { evaluateArithmetic } from "./arithmetic.ts";
import { defineTool, type ToolKind } from "./tool.ts";

const schema = z.strictObject({}).default({});

/** Computes arithmetic expressions. */
export const calculator: ToolKind<z.output<typeof schema>> = {
  schema,
  make: (_, setup) =>
    defineTool(setup, {
      description:
        "Computes an arithmetic expression: + - * / % ^, parentheses, pi, e, and functions as sqrt, round, min, max, ln, log10, sin.",
      input: z.object({ expression: z.string().min(1).max(1_000).describe("As (2 + 3) * 4^2") }),
      timeoutMs: 1_000,
      run: ({ expression }) => String(evaluateArithmetic(expression)),
    }),
};
