import type { Tool } from "@modelcontextprotocol/client";
import type { z } from "zod";
import { defined } from "../../src/defined.ts";
import { type JsonSchema, toJsonSchema } from "../../src/json-schema.ts";
import { allTools } from "../../src/mcp-tools/all-tools.ts";
import { findPublished, listPublished } from "../../src/mcp-tools/published.ts";
import type { AnyTool } from "../../src/mcp-tools/tool.ts";
import type { Role } from "../../src/store/key-store.ts";
import { hasRole } from "../../src/tenancy/roles.ts";
import { acceptedSchema } from "../prefer.ts";
import type { HandlerInput } from "../route.ts";
import { type Dialect, isSince, type Revision } from "./revisions.ts";

/** The product's tools that a key of this role may use, as a revision shows them. */
function listFor(role: Role, dialect: Dialect): Tool[] {
  const { revision } = dialect;
  let all = listed.get(revision);
  if (all === undefined) {
    all = allTools.map((tool) => ({ role: tool.role, shown: show(tool, dialect) }));
    listed.set(revision, all);
  }
  return all.filter((each) => hasRole(role, each.role)).map(({ shown }) => shown);
}

/** Most characters of JSON of a tenant's own tools on one page. */
const MAX_PAGE = 256 << 10;

/**
 * A page of the tools that a key may use: those of its tenant, by name, and on the last page the product's own. `cursor`: the
 * name of the last tool on the page before. Null when there is no such page.
 */
export async function pageFor(
  { platform, caller }: Pick<HandlerInput, "platform" | "caller">,
  dialect: Dialect,
  cursor: unknown,
): Promise<{ tools: Tool[]; nextCursor?: string } | null> {
  if (cursor !== undefined && (typeof cursor !== "string" || !(await findPublished(platform, caller, cursor))))
    return null;
  const tools: Tool[] = [];
  let size = 0;
  for (let after: string | null = cursor ?? ""; after !== null; ) {
    const published = await listPublished(platform, caller, { after, maxBytes: MAX_PAGE });
    for (const each of published.tools) {
      const shown = show(each, dialect);
      size += JSON.stringify(shown).length;
      const nextCursor = tools.at(-1)?.name;
      if (size > MAX_PAGE && nextCursor !== undefined) return { tools, nextCursor };
      tools.push(shown);
    }
    after = published.end;
  }
  return { tools: [...tools, ...listFor(caller.role, dialect)] };
}

/** Made at the first listing: deriving the schemas costs more than any other response. */
const listed = new Map<Revision, { role: Role; shown: Tool }[]>();

/** A tool as a revision shows it. Fields that are newer are left out of an older one, but for hints, which 2025-03-26 has. */
function show(tool: AnyTool, dialect: Dialect): Tool {
  const { name, title, description, input, output, hints, start } = tool;
  const inputSchema = ofObject(tool.inputSchema ?? derive(input, "input"));
  const shown = { name, description, inputSchema, annotations: { title, ...hints } };
  if (!isSince(dialect, "2025-06-18")) return shown;
  const outputSchema = output && toOutputSchema(derive(output, "output"), start !== undefined);
  const hasTasks = dialect.revision === "2025-11-25" && start !== undefined;
  return { ...shown, title, ...defined({ outputSchema }), ...(hasTasks && { execution: { taskSupport: "optional" } }) };
}

/** The JSON Schema of one of the product's own; many tools have the same, and to make one costs more than the rest of a listing. */
function derive(schema: z.ZodType, side: "input" | "output"): JsonSchema {
  const known = derived[side].get(schema) ?? toJsonSchema(schema, side);
  derived[side].set(schema, known);
  return known;
}

const derived = { input: new WeakMap<z.ZodType, JsonSchema>(), output: new WeakMap<z.ZodType, JsonSchema>() };

const ofObject = (schema: object) => ({ ...schema, type: "object" as const });

/** The schema of a result; a call that starts a job may return the job instead, when the client knows no tasks. */
function toOutputSchema(result: object, isJob: boolean): NonNullable<Tool["outputSchema"]> {
  return ofObject(isJob ? { anyOf: [result, derive(acceptedSchema, "output")] } : result);
}
