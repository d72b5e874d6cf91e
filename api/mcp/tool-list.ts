import type { Tool } from "@modelcontextprotocol/sdk/types.js";
import { defined } from "../../src/defined.ts";
import { toJsonSchema } from "../../src/json-schema.ts";
import { allTools } from "../../src/mcp-tools/all-tools.ts";
import type { AnyTool } from "../../src/mcp-tools/tool.ts";
import type { Role } from "../../src/store/key-store.ts";
import { hasRole } from "../../src/tenancy/roles.ts";
import { acceptedSchema } from "../prefer.ts";
import { type Dialect, isSince, type Revision } from "./revisions.ts";

/** The tools that a key of this role may use, as a revision shows them. */
export function listFor(role: Role, dialect: Dialect): Tool[] {
  const { revision } = dialect;
  let all = listed.get(revision);
  if (all === undefined) {
    all = allTools.map((tool) => ({ role: tool.role, shown: show(tool, dialect) }));
    listed.set(revision, all);
  }
  return all.filter((each) => hasRole(role, each.role)).map(({ shown }) => shown);
}

/** Made at the first listing: deriving the schemas costs more than any other response. */
const listed = new Map<Revision, { role: Role; shown: Tool }[]>();

/** A tool as a revision shows it. Fields that are newer are left out of an older one, but for hints, which 2025-03-26 has. */
function show({ name, title, description, input, output, hints, start }: AnyTool, dialect: Dialect): Tool {
  const shown = {
    name,
    description,
    inputSchema: ofObject(toJsonSchema(input, "input")),
    annotations: { title, ...hints },
  };
  if (!isSince(dialect, "2025-06-18")) return shown;
  const outputSchema = output && toOutputSchema(toJsonSchema(output, "output"), start !== undefined);
  const hasTasks = dialect.revision === "2025-11-25" && start !== undefined;
  return { ...shown, title, ...defined({ outputSchema }), ...(hasTasks && { execution: { taskSupport: "optional" } }) };
}

const ofObject = (schema: object) => ({ ...schema, type: "object" as const });

/** The schema of a result; a call that starts a job may return the job instead, when the client knows no tasks. */
function toOutputSchema(result: object, isJob: boolean): NonNullable<Tool["outputSchema"]> {
  return ofObject(isJob ? { anyOf: [result, toJsonSchema(acceptedSchema, "output")] } : result);
}
