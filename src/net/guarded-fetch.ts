import { lookup as resolve } from "node:dns";
import type { LookupFunction } from "node:net";
import type { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { Agent, type Dispatcher, request } from "undici";
import { AppError } from "../errors.ts";
import { checkUrl, isPublicAddress } from "./address-rules.ts";

const MAX_REDIRECTS = 5;
const CONNECT_TIMEOUT_MS = 10_000; // a host that does not take the connection by then counts as unreachable
const MAX_HEADER_BYTES = 32_768;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);
const retryableStatuses = new Set([408, 425, 429, 500, 502, 503, 504]);
const mediaTypes = /^(image|audio|video|font|model)\//;

export type FetchedBody = { url: string; bytes: Buffer; type?: string };
export type GuardedFetch = {
  /**
   * Gets the body of a public URL. Every address that a name resolves to, at every redirect, must be public unicast, and
   * the connection goes to the address that was checked.
   * @throws AppError `source_refused` (not public, bad scheme), `source_unreachable`, `request_too_large`,
   * `source_unreadable` (pictures, sound, video).
   */
  get(url: string, signal: AbortSignal): Promise<FetchedBody>;
  close(): Promise<void>;
};

/** Makes a fetcher. `timeoutMs` bounds a whole fetch with its redirects, `maxBytes` a body after decompression. */
export function makeGuardedFetch(options: {
  allowOrigins: readonly string[];
  timeoutMs: number;
  maxBytes: number;
  lookup?: LookupFunction;
}): GuardedFetch {
  const { guarded, open } = makeAgents(options);
  return {
    async get(text, signal) {
      const within = AbortSignal.any([signal, AbortSignal.timeout(options.timeoutMs)]);
      try {
        return await follow(text, within, { ...options, guarded, open });
      } catch (error) {
        signal.throwIfAborted();
        throw asFetchError(error, options.timeoutMs);
      }
    },
    close: async () => {
      await Promise.all([guarded.destroy(), open.destroy()]);
    },
  };
}

/** Connections: `guarded` only goes to public addresses, `open` anywhere; for origins that the operator lets through. */
export function makeAgents({
  timeoutMs,
  lookup = resolve as LookupFunction,
}: {
  timeoutMs: number;
  lookup?: LookupFunction;
}) {
  const limits = { maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
  return {
    guarded: new Agent({ ...limits, connect: { lookup: vetted(lookup), timeout: CONNECT_TIMEOUT_MS } }),
    open: new Agent({ ...limits, connect: { timeout: CONNECT_TIMEOUT_MS } }),
  };
}

/** A URL refused by its text, told before anything is stored or sent. @throws AppError `source_refused`, which names `param` */
export function assertFetchable(
  url: string,
  allowOrigins: readonly string[],
  param?: string,
): { url: URL; isAllowed: boolean } {
  const decision = checkUrl(url, allowOrigins);
  if ("refused" in decision) throw refused(decision.refused, param);
  return decision;
}

function refused(reason: string, param = "url"): AppError {
  return new AppError("source_refused", `This URL is not fetched. ${reason}`, { param });
}

/** A lookup that hands out a name's addresses only if all of them are public; what it hands out is what is connected to. */
function vetted(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "", 0);
      const addresses = Array.isArray(found) ? found : [];
      const [first] = addresses;
      if (!first || !addresses.every(({ address }) => isPublicAddress(address))) {
        return callback(refused("Its host does not resolve to public addresses."), "", 0);
      }
      return options.all ? callback(null, addresses) : callback(null, first.address, first.family);
    });
  };
}

type FollowContext = { allowOrigins: readonly string[]; maxBytes: number; guarded: Agent; open: Agent };

async function follow(text: string, signal: AbortSignal, context: FollowContext): Promise<FetchedBody> {
  let next = text;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
    const { url, isAllowed } = assertFetchable(next, context.allowOrigins);
    const response = await request(url, {
      dispatcher: isAllowed ? context.open : context.guarded,
      method: "GET",
      signal,
      headers: { accept: "*/*", "accept-encoding": "gzip, br", "user-agent": "switchyard" },
    });
    const location = headerOf(response, "location");
    if (!redirectStatuses.has(response.statusCode) || location === undefined) {
      return readBody(url, response, context.maxBytes);
    }
    discard(response);
    if (!URL.canParse(location, url.href)) throw refused("It redirects to something that is not a URL.");
    next = new URL(location, url).href;
  }
  throw new AppError("source_unreachable", `The URL redirects more than ${MAX_REDIRECTS} times.`, { param: "url" });
}

async function readBody(url: URL, response: Dispatcher.ResponseData, maxBytes: number): Promise<FetchedBody> {
  const type = headerOf(response, "content-type");
  try {
    if (response.statusCode < 200 || response.statusCode > 299) {
      throw new AppError("source_unreachable", `The URL answered with status ${response.statusCode}.`, {
        param: "url",
        retryable: retryableStatuses.has(response.statusCode),
      });
    }
    if (type && mediaTypes.test(type)) {
      throw new AppError("source_unreadable", `The URL holds ${type}, which is not a document.`);
    }
    if (Number(headerOf(response, "content-length") ?? 0) > maxBytes) throw tooLarge(maxBytes);
    const bytes = await collect(decoded(response), maxBytes);
    return { url: url.href, bytes, ...(type === undefined ? {} : { type }) };
  } finally {
    discard(response);
  }
}

/** Ends a body that is not read to its end. It reports that as an error, which nobody waits for any more. */
function discard({ body }: Dispatcher.ResponseData): void {
  body.on("error", () => undefined);
  body.destroy();
}

/** The body without its content encoding. Decompression happens as it is read, so the limit on what is read bounds it. */
function decoded(response: Dispatcher.ResponseData): Readable {
  const encoding = headerOf(response, "content-encoding")?.toLowerCase().trim() ?? "identity";
  if (encoding === "identity" || encoding === "") return response.body;
  const decoders = { gzip: createGunzip, "x-gzip": createGunzip, deflate: createInflate, br: createBrotliDecompress };
  if (!(encoding in decoders)) {
    throw new AppError("source_unreadable", `The URL's content encoding (${encoding}) is not known.`);
  }
  const decoder = decoders[encoding as keyof typeof decoders](); // `in` has just told that it is one of them
  response.body.on("error", (error) => decoder.destroy(error));
  return response.body.pipe(decoder);
}

async function collect(body: Readable, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    parts.push(part);
  }
  return Buffer.concat(parts, size);
}

function tooLarge(maxBytes: number): AppError {
  return new AppError("request_too_large", `The source is larger than ${maxBytes} bytes.`, { param: "url" });
}

function headerOf(response: Dispatcher.ResponseData, name: string): string | undefined {
  const value = response.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** What a failed fetch means for the caller. Names and codes of the system do not reach the message. */
export function asFetchError(error: unknown, timeoutMs: number): AppError {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof AppError) return cause;
  }
  const isTimeout = error instanceof Error && (error.name === "TimeoutError" || error.name.includes("Timeout"));
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const message = isTimeout ? `The URL did not answer within ${timeoutMs} ms.` : "The URL could not be fetched.";
  return new AppError("source_unreachable", message, { param: "url", retryable: code !== "ENOTFOUND", cause: error });
}
