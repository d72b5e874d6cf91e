import { z } from "zod";
import { invalidRequest } from "../lib/errors.ts";

/** What the names of the product's own tools begin with. */
const RESERVED = "svc_";

/** Makes an agent or a workflow a tool of `/mcp`. */
export const publishSchema = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9_.-]{1,64}$/, "must be 1 to 64 letters, digits, _, . or -")
      .refine((name) => !name.toLowerCase().startsWith(RESERVED), `must not begin with ${RESERVED}`)
      .describe("Of the tool, once in the tenant"),
    description: z.string().trim().min(1).max(1_024).describe("For the model that chooses among the tools"),
  })
  .describe("Makes it a tool of `/mcp`; without it, it is none");

/** Header names by which clients repeat an argument (`x-mcp-header`), and the path of each argument. */
type ParamHeader = { header: string; path: readonly string[]; type: unknown };

/** Deepest argument that a header repeats. */
const MAX_DEPTH = 8;
const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The annotations of a schema that hold by MCP 2026-07-28: those on properties within properties alone. */
export function paramHeadersOf(schema: unknown, path: readonly string[] = []): ParamHeader[] {
  if (!isObject(schema) || !isObject(schema.properties) || path.length >= MAX_DEPTH) return [];
  return Object.entries(schema.properties).flatMap(([name, property]) => {
    const at = [...path, name];
    const header = isObject(property) ? property["x-mcp-header"] : undefined;
    const own = header === undefined ? [] : [{ header: String(header), path: at, type: Object(property).type }];
    return [...own, ...paramHeadersOf(property, at)];
  });
}

/** @throws AppError `invalid_request` for an input schema that no tool can have. */
export function checkToolSchema(inputSchema: Readonly<Record<string, unknown>> | undefined): void {
  if (inputSchema === undefined) return;
  if (inputSchema.type !== "object") throw invalidRequest("inputSchema.type", "A tool's is object.");
  const seen = new Set<string>();
  for (const { header, path, type } of paramHeadersOf(inputSchema)) {
    const problem = problemOf(header, type, seen);
    if (problem) throw invalidRequest(`inputSchema.properties.${path.join(".properties.")}.x-mcp-header`, problem);
    seen.add(header.toLowerCase());
  }
}

function problemOf(header: string, type: unknown, seen: ReadonlySet<string>): string | undefined {
  if (!headerName.test(header)) return "It is no name of a header.";
  if (type !== "string" && type !== "integer" && type !== "boolean") return "Its type is string, integer or boolean.";
  return seen.has(header.toLowerCase()) ? "Another argument has this header." : undefined;
}
