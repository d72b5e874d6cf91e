import { z } from "zod";
import { withFewFields } from "../../bounded-json.ts";
import { patternIds } from "../../composite/patterns.ts";
import { profileIds } from "../../composite/profiles.ts";
import { idSchema } from "../../ids.ts";
import { checkUrl } from "../../net/address-rules.ts";

/** As models take names of tools, and short enough for what an MCP server's own names add. */
const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,40}$/, "must be 1 to 40 letters, digits, _ or -");
const described = {
  name: toolName.optional().describe("What the model calls it; default: its type"),
  description: z.string().trim().min(1).max(2_000).optional().describe("What the model is told of it"),
};

/** A host, as `api.acme.io`, `*.acme.io` for all below it, each with a port or without. */
const hostPattern = z
  .string()
  .regex(/^(\*\.)?[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?(:\d{1,5})?$/, "must be a host, as api.acme.io or *.acme.io");
const MAX_HEADERS = 30;

/** Headers that the connection itself needs, or that would make one request two. */
const ownHeaders = /^(host|content-length|transfer-encoding|connection|upgrade|te|trailer|expect|idempotency-key)$/i;
const headers = withFewFields(
  MAX_HEADERS,
  z.record(
    z.string().regex(/^[0-9A-Za-z_-]{1,100}$/, "must be a header's name"),
    z
      .string()
      .max(4_000)
      .regex(/^[\t\x20-\x7e]*$/, "must be printable ASCII"),
  ),
).refine(
  (record) => !Object.keys(record).some((name) => ownHeaders.test(name)),
  "holds a header that is set by itself",
);
const httpUrl = z
  .url({ protocol: /^https?$/ })
  .max(2_000)
  .refine(
    (text) => !("refused" in checkUrl(text, [new URL(text).origin])),
    "must be an http or https URL without credentials",
  );

export const httpMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;

const ragQueryConfig = z.strictObject({
  topK: z.number().int().min(1).max(50).optional(),
  documentIds: z.array(idSchema("document")).min(1).max(1_000).optional().describe("All that it may find"),
});
const httpRequestConfig = z.strictObject({
  allowedHosts: z.array(hostPattern).min(1).max(50),
  methods: z.array(z.enum(httpMethods)).min(1).optional().describe("Default: GET"),
  headers: headers.optional().describe("Sent with each request; `{{context.x}}` stands for `x` of the run's context"),
});
const agentConfig = z.strictObject({ agentId: idSchema("agent") });
const workflowConfig = z.strictObject({ workflowId: idSchema("workflow") });
const compositeConfig = z.strictObject({ pattern: z.enum(patternIds), profile: z.enum(profileIds) });
const mcpConfig = z.strictObject({
  url: httpUrl,
  allowedTools: z.array(z.string().min(1).max(200)).min(1).max(100).optional().describe("Default: all that it has"),
  headers: headers.optional().describe("Sent with each request; `{{context.x}}` stands for `x` of the run's context"),
});
const nothing = z.strictObject({});

/** A tool of an agent: its type and how it is set up. What is not known is refused, so that nothing is silently off. */
export const toolSpecSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("rag_query"), ...described, config: ragQueryConfig.default({}) }),
  z.object({ type: z.literal("calculator"), ...described, config: nothing.default({}) }),
  z.object({ type: z.literal("current_time"), ...described, config: nothing.default({}) }),
  z.object({ type: z.literal("http_request"), ...described, config: httpRequestConfig }),
  z.object({ type: z.literal("agent"), ...described, config: agentConfig }),
  z.object({ type: z.literal("workflow"), ...described, config: workflowConfig }),
  z.object({ type: z.literal("composite"), ...described, config: compositeConfig }),
  z.object({ type: z.literal("mcp"), ...described, config: mcpConfig }),
]);
export type ToolSpec = z.output<typeof toolSpecSchema>;
export type RagQueryConfig = z.output<typeof ragQueryConfig>;
export type HttpRequestConfig = z.output<typeof httpRequestConfig>;
export type AgentToolConfig = z.output<typeof agentConfig>;
export type WorkflowToolConfig = z.output<typeof workflowConfig>;
export type CompositeToolConfig = z.output<typeof compositeConfig>;
export type McpToolConfig = z.output<typeof mcpConfig>;
