import { z } from "zod";
import { toPlainWords } from "../lib/issue-messages.ts";
import { checkDefinition } from "./check-definition.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { workflowBodySchema } from "./schemas.ts";

/** Most problems that one answer lists. */
const MAX_PROBLEMS = 100;
/** Longest path and message in it, in characters: they hold names that the caller chose. */
const MAX_SHOWN = 300;

/** What is wrong with a definition. */
export const validationSchema = z.object({
  valid: z.boolean(),
  problems: z.array(
    z.object({ path: z.string().describe("As `steps[2].then[0].url`"), code: z.string(), message: z.string() }),
  ),
});
type Validation = z.output<typeof validationSchema>;

/** Checks a definition as its creation does, and gives all problems. @throws as `checkDefinition`. */
export async function validate(deps: WorkflowsDeps, tenantId: string, given: unknown): Promise<Validation> {
  const read = workflowBodySchema.safeParse(given, { error: toPlainWords });
  const problems: Validation["problems"] = [];
  const add = (path: string, code: string, message: string) =>
    problems.push({ path: path.slice(0, MAX_SHOWN), code, message: message.slice(0, MAX_SHOWN) });
  if (read.success) {
    await checkDefinition(deps, { tenantId, body: read.data }, ({ param = "", code, message }) => {
      if (problems.length < MAX_PROBLEMS) add(param, code, message);
    });
  } else {
    for (const { path, message } of read.error.issues.slice(0, MAX_PROBLEMS))
      add(toPath(path), "invalid_request", `It ${message}.`);
  }
  return { valid: problems.length === 0, problems };
}

const toPath = (path: readonly PropertyKey[]) =>
  path
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "");
