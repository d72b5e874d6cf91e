import { createInterface } from "node:readline";
import { request } from "undici";
import type { z } from "zod";
import { AppError } from "../../lib/errors.ts";
import { fromAbort, fromConnectionError } from "../resilience/transport-errors.ts";
import type { BatchItemResult, CallContext, ToHeaders } from "./provider.ts";
import { fromWireError, hideKey, parseWire } from "./wire-errors.ts";

/** Longest time of one request about a batch, the upload of its items included, in ms. */
const TIMEOUT_MS = 120_000;
const MISFIT = "does not fit its batch interface";

/** A GET, or with a body a POST. */
type BatchCall = {
  path: string;
  headers?: Record<string, string>;
  body?: { type: string; content: string | Buffer } | undefined;
};

/** Requests of one provider's batch interface. No caller waits for them, so they need no pool. */
export function makeBatchClient(baseUrl: string, toHeaders: ToHeaders) {
  const send = async ({ path, headers, body }: BatchCall, { signal, apiKey }: CallContext) => {
    const response = await request(`${baseUrl}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { ...toHeaders(apiKey), ...headers, ...(body && { "content-type": body.type }) },
      body: body?.content ?? null,
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    }).catch((error: unknown) => {
      throw toBroken(error, { signal, hasAnswered: false });
    });
    if (response.statusCode >= 200 && response.statusCode < 300) return response;
    const text = await readText(response.body, signal);
    throw fromWireError(response.statusCode, response.headers, hideKey(text, apiKey));
  };
  return {
    /** The JSON of a response. @throws AppError as the provider's calls do, `provider_failed` when it does not fit. */
    async json<T>(schema: z.ZodType<T>, call: BatchCall, context: CallContext): Promise<T> {
      const { body } = await send(call, context);
      return parseWire(schema, await readText(body, context.signal), MISFIT);
    },
    /** The lines of a response in JSON Lines, as they come. Throws the same, also in the middle. */
    async *lines<T>(schema: z.ZodType<T>, path: string, context: CallContext): AsyncGenerator<T> {
      const { body } = await send({ path }, context);
      const lines = createInterface({ input: body, crlfDelay: Number.POSITIVE_INFINITY });
      try {
        for await (const line of lines) if (line.trim() !== "") yield parseWire(schema, line, MISFIT);
      } catch (error) {
        throw toBroken(error, { signal: context.signal, hasAnswered: true });
      }
    },
  };
}

async function readText(body: { text(): Promise<string> }, signal: AbortSignal): Promise<string> {
  try {
    return await body.text();
  } catch (error) {
    throw toBroken(error, { signal, hasAnswered: true });
  }
}

/** The error of a connection that broke, also in the middle of a response: the batch is looked at again. */
function toBroken(error: unknown, { signal, hasAnswered }: { signal: AbortSignal; hasAnswered: boolean }): AppError {
  if (error instanceof AppError) return error;
  if (signal.aborted) return fromAbort(signal);
  return fromConnectionError(error instanceof Error ? error : new Error("unknown"), hasAnswered);
}

/** The result of an item; one whose response cannot be read fails alone. */
export function readItem(
  customId: string,
  read: () => Omit<Extract<BatchItemResult, { result: unknown }>, "customId">,
): BatchItemResult {
  try {
    return { customId, ...read() };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { customId, error };
  }
}
