import { createInterface } from "node:readline";
import { request } from "undici";
import type { z } from "zod";
import { fromAbort, fromConnectionError } from "../resilience/transport-errors.ts";
import type { CallContext, ToHeaders } from "./provider.ts";
import { fromWireError, parseWire } from "./wire-errors.ts";

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
      if (signal.aborted) throw fromAbort(signal);
      throw fromConnectionError(error instanceof Error ? error : new Error("unknown"), false);
    });
    if (response.statusCode >= 200 && response.statusCode < 300) return response;
    const text = await response.body.text();
    throw fromWireError(response.statusCode, response.headers, apiKey ? text.replaceAll(apiKey, "[key]") : text);
  };
  return {
    /** The JSON of a response. @throws AppError as the provider's calls do, `provider_failed` when it does not fit. */
    async json<T>(schema: z.ZodType<T>, call: BatchCall, context: CallContext): Promise<T> {
      return parseWire(schema, await (await send(call, context)).body.text(), MISFIT);
    },
    /** The lines of a response in JSON Lines, as they come. Throws the same. */
    async *lines<T>(schema: z.ZodType<T>, path: string, context: CallContext): AsyncGenerator<T> {
      const { body } = await send({ path }, context);
      const lines = createInterface({ input: body, crlfDelay: Number.POSITIVE_INFINITY });
      for await (const line of lines) if (line.trim() !== "") yield parseWire(schema, line, MISFIT);
    },
  };
}
