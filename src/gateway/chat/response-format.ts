import { AppError } from "../../lib/errors.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";
import type { FinishReason, ResponseFormat } from "../providers/provider.ts";

type Answer = { text: string; finishReason: FinishReason | undefined };
type Asker = { tenantId: string; signal?: AbortSignal };

/**
 * Checks JSON Schemas of tenants, and values by them; bounded in time, memory and number, and never long in this process.
 * Both throw AppError `invalid_request` for what does not fit, `param` naming its path after `inputSchema` or `input`;
 * `too_many_concurrent`, `unavailable`.
 */
export type SchemaChecks = {
  checkDefinition(asker: Asker, work: { steps: []; inputSchema: Record<string, unknown> }): Promise<void>;
  checkInput(asker: Asker, work: { inputSchema: Record<string, unknown>; input: unknown }): Promise<void>;
};

export const MISMATCH = "response_format_mismatch";
const SCHEMA = "response_format.json_schema.schema";

/** @throws AppError `invalid_request` for a schema by which no answer can be checked; what the checks throw else. */
export async function requireCheckable(
  { checkDefinition }: SchemaChecks,
  asker: Asker,
  format: ResponseFormat,
): Promise<void> {
  if (format.type !== "json_schema") return;
  try {
    await checkDefinition(asker, { steps: [], inputSchema: format.json_schema.schema });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "invalid_request") throw error;
    throw new AppError("invalid_request", `${SCHEMA}: ${error.message}`, { param: SCHEMA });
  }
}

/**
 * What is wrong with an answer that has come to its end and does not match the schema that it was asked for:
 * `response_format_mismatch`, or why that could not be found out; undefined for others. It was served, and is charged.
 */
export async function findMismatch(
  { checkInput }: SchemaChecks,
  asker: Asker,
  format: ResponseFormat,
  { text, finishReason }: Answer,
): Promise<unknown> {
  if (format.type !== "json_schema" || finishReason !== "stop") return undefined;
  const input = tryParseJson(text);
  if (input === undefined) return mismatch("It is no JSON.");
  try {
    await checkInput(asker, { inputSchema: format.json_schema.schema, input });
    return undefined;
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "invalid_request") return error;
    return mismatch(error.message, error.param?.replace(/^input\.?/, ""));
  }
}

/** Path and reason are only in the details, since they may quote the answer, which must not be logged. */
function mismatch(problem: string, path = ""): AppError {
  const message = "The model's answer does not match the schema of response_format.";
  return new AppError(MISMATCH, message, { details: { path, problem } });
}
