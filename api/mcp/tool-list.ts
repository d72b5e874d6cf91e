import type { z } from "zod";
import { toJsonSchema } from "../../src/lib/json-schema.ts";
import { allTools } from "../../src/mcp-tools/all-tools.ts";
import { findPublished, listPublished } from "../../src/mcp-tools/published.ts";
import type { AnyTool } from "../../src/mcp-tools/tool.ts";
import type { Role } from "../../src/store/key-store.ts";
import { hasRole } from "../../src/tenancy/roles.ts";
import { acceptedSchema } from "../prefer.ts";
import type { HandlerInput } from "../route.ts";
import { JsonTexts } from "./json-rpc.ts";
import { type Dialect, isSince, type Revision } from "./revisions.ts";

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
): Promise<{ tools: JsonTexts; nextCursor?: string } | null> {
  if (cursor !== undefined && (typeof cursor !== "string" || !(await findPublished(platform, caller, cursor))))
    return null;
  const tools: Listed[] = [];
  let size = 0;
  for (let after: string | null = cursor ?? ""; after !== null; ) {
    const published = await listPublished(platform, caller, { after, maxBytes: MAX_PAGE });
    for (const each of published.tools) {
      const json = show(each, dialect);
      size += json.length;
      const nextCursor = tools.at(-1)?.name;
      if (size > MAX_PAGE && nextCursor !== undefined) return { tools: textsOf(tools), nextCursor };
      tools.push({ name: each.name, json });
    }
    after = published.end;
  }
  return { tools: textsOf([...tools, ...listFor(caller.role, dialect)]) };
}

/** A tool of a list, as JSON. The schema of a tenant's own, which may be long, stays the text that the store keeps. */
type Listed = { name: string; json: string };
const textsOf = (tools: readonly Listed[]) => new JsonTexts(tools.map(({ json }) => json));

/** The product's tools that a key of this role may use, as a revision shows them. */
function listFor(role: Role, dialect: Dialect): Listed[] {
  const { revision } = dialect;
  const all = listed.get(revision) ?? allTools.map((each) => ({ ...each, json: show(each, dialect) }));
  listed.set(revision, all);
  return all.filter((each) => hasRole(role, each.role));
}

/** Made at the first listing: deriving the schemas costs more than any other response. */
const listed = new Map<Revision, (Listed & { role: Role })[]>();

/** A tool as a revision shows it. Fields that are newer are left out of an older one, but for hints, which 2025-03-26 has. */
function show(tool: AnyTool, dialect: Dialect): string {
  const { name, title, description, input, output, hints, start } = tool;
  const annotations = { title, ...hints };
  const isRich = isSince(dialect, "2025-06-18");
  const hasTasks = dialect.revision === "2025-11-25" && start !== undefined;
  const execution = hasTasks ? { taskSupport: "optional" } : undefined;
  const about = JSON.stringify({ name, description, annotations, ...(isRich && { title, execution }) });
  const schemas = [`"inputSchema":${tool.inputSchema ?? derive(input, "input", false)}`];
  if (isRich && output) schemas.push(`"outputSchema":${derive(output, "output", start !== undefined)}`);
  return `${about.slice(0, -1)},${schemas.join(",")}}`;
}

/**
 * The JSON Schema of one of the product's own, as text; many tools have the same, and to make one costs more than the rest of a
 * listing. `orJob`: a call may return the job that it starts, if the client knows no tasks.
 */
function derive(schema: z.ZodType, side: "input" | "output", orJob: boolean): string {
  const known = derived[side].get(schema);
  if (known !== undefined) return known;
  const json = toJsonSchema(schema, side);
  const whole = orJob ? { anyOf: [json, toJsonSchema(acceptedSchema, "output")] } : json;
  const text = JSON.stringify({ ...whole, type: "object" });
  derived[side].set(schema, text);
  return text;
}

const derived = { input: new WeakMap<z.ZodType, string>(), output: new WeakMap<z.ZodType, string>() };
