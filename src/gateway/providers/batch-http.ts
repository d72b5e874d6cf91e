import { createInterface } from "node:readline";
import { request } from "undici";
import { fromAbort, fromConnectionError } from "../resilience/transport-errors.ts";
import type { CallContext } from "./provider.ts";
import { fromWireError, parseJson } from "./wire-errors.ts";

/** Longest time of one request about a batch, the upload of its lines included, in ms. */
const TIMEOUT_MS = 120_000;

export type BatchRequest = {
  method: "GET" | "POST";
  url: string;
  headers: Record<string, string>;
  body?: string | Buffer;
};

/**
 * One request of a provider's batch interface; its answer's JSON. It is not on anybody's way, so it needs no pool.
 * @throws AppError as the provider's calls do.
 */
export async function askForJson(call: BatchRequest, context: CallContext): Promise<unknown> {
  const answer = await send(call, context);
  return parseJson(await answer.body.text());
}

/** The lines of an answer in JSON Lines, parsed, as they come. */
export async function* askForLines(call: BatchRequest, context: CallContext): AsyncGenerator<unknown> {
  const answer = await send(call, context);
  const lines = createInterface({ input: answer.body, crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) if (line.trim() !== "") yield parseJson(line);
}

async function send({ method, url, headers, body }: BatchRequest, { signal, apiKey }: CallContext) {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const answer = await request(url, { method, headers, signal: limit, ...(body === undefined ? {} : { body }) }).catch(
    (error: unknown) => {
      if (signal.aborted) throw fromAbort(signal);
      throw fromConnectionError(error instanceof Error ? error : new Error("unknown"), false);
    },
  );
  if (answer.statusCode >= 200 && answer.statusCode < 300) return answer;
  const text = await answer.body.text();
  throw fromWireError(answer.statusCode, answer.headers, apiKey ? text.replaceAll(apiKey, "[key]") : text);
}
