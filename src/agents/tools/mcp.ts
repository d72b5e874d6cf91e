import { setImmediate } from "node:timers/promises";
import type { StructuredTool } from "@langchain/core/tools";
import { z } from "zod";
import { AppError } from "../../lib/errors.ts";
import { checkUrl } from "../../net/address-rules.ts";
import { fillHeaders, headersSchema } from "./headers.ts";
import type { RemoteResult } from "./mcp-task.ts";
import { findTools, type ListedTool, MAX_TOOLS } from "./mcp-tools.ts";
import { type ToolSetup, toolKind } from "./tool.ts";

const CONNECT_TIMEOUT_MS = 10_000;
/** Longest JSON of a part of a result that is not known, in characters. */
const MAX_PART = 5_000;
/** Longest answer of a server, in bytes. */
const MAX_ANSWER_BYTES = 4 << 20;
/** A longer one comes in turns, in bytes. */
const LARGE_ANSWER_BYTES = 256 << 10;

/**
 * The tools of an MCP server (https://modelcontextprotocol.io/specification, streamable HTTP, of either era), each under the name of this tool
 * and its own, `docs_search`; none but those allowed. A server that does not answer is one tool that says so.
 */
export const mcp = toolKind({
  schema: z.strictObject({
    url: z
      .url({ protocol: /^https?$/ })
      .max(2_000)
      .refine(
        (text) => !("refused" in checkUrl(text, [new URL(text).origin])),
        "must be an http or https URL without credentials",
      ),
    allowedTools: z.array(z.string().min(1).max(200)).min(1).max(100).optional().describe("Default: all that it has"),
    headers: headersSchema,
  }),
  async check({ url }, { deps, field }) {
    deps.egress.check(url, `${field}.url`);
  },
  async make({ url, allowedTools, headers }, setup) {
    const { deps, run, name, context, signal, share, logger, closeLater, notice } = setup;
    try {
      const { listed, hidden } = await findTools(
        {
          url,
          headers: fillHeaders(await deps.credentials.open(run.tenantId, headers), context),
          fetch: async (target, init) => boundBody(await deps.egress.fetch(target as string | URL, init), share),
          share,
          signal: AbortSignal.any([signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)]),
        },
        closeLater,
      );
      if (hidden.length > 0) {
        logger.warn({ tool: name, hidden }, "some tools of an agent's MCP server are malformed");
        await notice(
          `Tools of ${name} that cannot be used, because their definitions are malformed: ${hidden.join(", ")}`,
        );
      }
      return toTools(
        setup,
        listed.filter((tool) => allowedTools?.includes(tool.name) ?? true),
      );
    } catch (error) {
      signal.throwIfAborted();
      const problem = toProblem(error);
      logger.warn({ tool: name, problem }, "an agent's MCP server cannot be used");
      return toMissingTool(setup, problem);
    }
  },
});

function toTools(setup: ToolSetup, listed: readonly ListedTool[]): StructuredTool[] {
  const tools = new Map<string, StructuredTool>();
  for (const tool of listed.slice(0, MAX_TOOLS)) {
    const name = `${setup.name}_${tool.name}`.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64);
    if (!tools.has(name)) tools.set(name, toTool(setup, name, tool)); // of two that a cut makes alike, the first
  }
  return [...tools.values()];
}

/** The server checks the arguments: a check here by its schema could hold up the worker for as long as a pattern likes. */
function toTool({ tool, callOf, signal }: ToolSetup, name: string, listed: ListedTool): StructuredTool {
  return tool(
    async (given, config) => {
      const { signal, idempotencyKey, note } = callOf(config);
      try {
        const { output, isError } = toOutput(await listed.call(given, { signal, meta: { idempotencyKey } }));
        note({ isError });
        return output;
      } catch (error) {
        signal.throwIfAborted();
        throw new AppError("provider_failed", toProblem(error), { cause: error });
      }
    },
    {
      name,
      description: listed.description,
      schema: z.looseObject({}),
      extras: { parameters: { ...listed.inputSchema }, timeoutMs: listed.timeoutMs },
      defaultConfig: { signal },
    },
  );
}

/** The texts of a result. */
function toOutput({ content = [], structuredContent, isError }: RemoteResult) {
  const parts = content.map(toText);
  const structured = parts.length === 0 && structuredContent ? [JSON.stringify(structuredContent)] : [];
  return { output: [...parts, ...structured].join("\n"), isError: isError === true };
}

/** The text of a part of a result; of what has only bytes its kind, of what is not known its JSON. */
function toText(part: unknown): string {
  const { type, text, resource, data } = Object(part);
  const said = text ?? Object(resource).text;
  if (typeof said === "string") return said;
  if (typeof data === "string" || typeof Object(resource).blob === "string") return `[${String(type).slice(0, 100)}]`;
  const json = JSON.stringify(part);
  return json.length <= MAX_PART ? json : `${json.slice(0, MAX_PART).toWellFormed()}…`;
}

function toMissingTool({ tool, name }: ToolSetup, problem: string): StructuredTool {
  const failed = () => Promise.reject(new AppError("source_unreachable", `The server of these tools: ${problem}`));
  const description = "Tools of a server that cannot be reached now: this tool does nothing.";
  const parameters = { type: "object", properties: {} };
  return tool(failed, { name, description, schema: z.looseObject({}), extras: { parameters } });
}

/** The problem in words that reveal nothing about the internal network. */
function toProblem(error: unknown): string {
  if (error instanceof AppError) return error.message;
  if (!(error instanceof Error)) return "failed";
  if (error.cause instanceof AppError) return error.cause.message;
  return error.message.slice(0, 500).toWellFormed();
}

/**
 * The same response, whose body fails when it is longer than a server's may be: its readers keep all of it in memory. What is
 * more than an ordinary answer has comes in turns, and its reader parses it in the last one.
 */
function boundBody(response: Response, share: ToolSetup["share"]): Response {
  const { body, status, statusText, headers } = response;
  if (!body) return response;
  const reader = body.getReader();
  let seen = 0;
  const bounded = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value } = await reader.read();
      seen += value?.byteLength ?? 0;
      if (seen > MAX_ANSWER_BYTES) {
        void reader.cancel().catch(() => undefined); // it fails already
        throw new AppError("request_too_large", `The answer is longer than ${MAX_ANSWER_BYTES} bytes.`);
      }
      const give = () => (value ? controller.enqueue(value) : controller.close());
      if (seen <= LARGE_ANSWER_BYTES) return give();
      await share(async () => {
        give();
        await setImmediate(); // by then it was read
      });
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(bounded, { status, statusText, headers });
}
