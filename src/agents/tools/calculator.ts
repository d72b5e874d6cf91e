import { z } from "zod";
import { evaluateArithmetic } from "./arithmetic.ts";
import { type AgentTool, defineTool } from "./tool.ts";

/** Computes arithmetic expressions. */
export function makeCalculatorTool(named: Pick<AgentTool, "name"> & { description?: string | undefined }): AgentTool {
  return defineTool({
    name: named.name,
    description:
      named.description ??
      "Computes an arithmetic expression: + - * / % ^, parentheses, pi, e, and functions as sqrt, round, min, max, ln, log10, sin.",
    input: z.object({ expression: z.string().min(1).max(1_000).describe("As (2 + 3) * 4^2") }),
    timeoutMs: 1_000,
    run: ({ expression }) => String(evaluateArithmetic(expression)),
  });
}
