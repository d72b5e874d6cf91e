import { invalidRequest } from "../../lib/errors.ts";
import type { ChatOptions } from "./request.ts";

const HEADER = "x-svc-options";
/** An answer is kept for a day at most. */
const MAX_TTL_SECONDS = 86_400;

/**
 * Parses `x-svc-options`: `key=value` pairs separated by `;` or `,`.
 * @throws AppError `invalid_request` for an unknown option or a value that it does not take.
 */
export function parseSvcOptions(header: string | undefined): ChatOptions {
  const options: ChatOptions = {};
  if (header === undefined) return options;
  for (const pair of header.split(/[;,]/)) {
    if (pair.trim() === "") continue;
    const [key = "", value = ""] = pair.split("=", 2).map((part) => part.trim().toLowerCase());
    if (key === "compress") options.compress = readFlag(key, value);
    else if (key === "cache") options.cache = readFlag(key, value);
    else if (key === "cache-ttl") options.cacheTtlSeconds = readSeconds(key, value);
    else if (key === "strict") options.strict = readFlag(key, value);
    else
      throw reject(`has no option ${JSON.stringify(key.slice(0, 50))}; it knows compress, cache, cache-ttl and strict`);
  }
  return options;
}

function readFlag(key: string, value: string): boolean {
  if (value !== "true" && value !== "false") throw reject(`${key} takes true or false`);
  return value === "true";
}

function readSeconds(key: string, value: string): number {
  const seconds = /^\d{1,6}$/.test(value) ? Number(value) : 0;
  if (seconds < 1 || seconds > MAX_TTL_SECONDS)
    throw reject(`${key} takes a number of seconds, 1 to ${MAX_TTL_SECONDS}`);
  return seconds;
}

const reject = (what: string) => invalidRequest(HEADER, `${HEADER} ${what}.`);
