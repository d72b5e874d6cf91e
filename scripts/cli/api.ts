import { setTimeout as delay } from "node:timers/promises";
import { Option } from "commander";
import { jittered } from "../../src/lib/jitter.ts";

/** Longest wait for one response, in ms. */
const TIMEOUT_MS = 60_000;
/** How long one call may wait in all because its key has made as many calls as it may, in ms. */
const MAX_RATE_WAIT_MS = 5 * 60_000;

/** `--url` and `--key` of every command that may ask the API; `URL` and `KEY` of the environment serve as well. */
export const urlOption = () => new Option("--url <url>", "the API").env("URL").default("http://127.0.0.1:3000");
export const keyOption = () => new Option("--key <key>", "an API key").env("KEY");

/** An API that cannot be reached, or that refuses a call; the message is for a person. */
export class ApiRejection extends Error {
  override name = "ApiRejection";
}

export type Api = (method: string, path: string, body?: unknown) => Promise<Record<string, unknown>>;

/**
 * Calls of the API with a key, each again after a 429 that says when. Prints which API that is on standard error.
 * @throws ApiRejection for anything but a success.
 */
export function openApi(options: { url: string; key: string }): Api {
  const url = options.url.replace(/\/+$/, "");
  console.error(`API: ${url}`);
  return async (method, path, body) => {
    const headers = new Headers({ authorization: `Bearer ${options.key}` });
    if (body !== undefined) headers.set("content-type", "application/json");
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const ask = () =>
      fetch(`${url}${path}`, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) }).catch((error: unknown) => {
        throw new ApiRejection(`There is no API at ${url}.`, { cause: error });
      });
    const response = await withinRate(ask);
    const text = await response.text();
    if (response.ok) return text === "" ? {} : JSON.parse(text);
    throw new ApiRejection(`${url} answers ${response.status}: ${messageOf(text)}`);
  };
}

/** Asks until the answer is another than "too many requests", or the wait would be too long. */
async function withinRate(ask: () => Promise<Response>): Promise<Response> {
  const until = Date.now() + MAX_RATE_WAIT_MS;
  for (;;) {
    const response = await ask();
    const waitMs = Number(response.headers.get("retry-after") ?? Number.NaN) * 1_000;
    if (response.status !== 429 || !(Date.now() + waitMs <= until)) return response;
    await response.body?.cancel();
    await delay(waitMs + jittered(1_000));
  }
}

function messageOf(text: string): string {
  try {
    return String(JSON.parse(text).error.message);
  } catch {
    return text.slice(0, 200); // not one of our own errors, as of a proxy
  }
}
