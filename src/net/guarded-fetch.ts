import { defined } from "../lib/defined.ts";
import { AppError } from "../lib/errors.ts";
import { sizeInWords } from "../lib/size-in-words.ts";
import { type Egress, type EgressOptions, makeEgress, rejectedUrl } from "./egress.ts";
import { asFetchError } from "./fetch-errors.ts";

const MAX_REDIRECTS = 5;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);
const retryableStatuses = new Set([408, 425, 429, 500, 502, 503, 504]);
const mediaTypes = /^(image|audio|video|font|model)\//;
/** Content encodings that `fetch` decodes. */
const encodings = /^(|identity|gzip|x-gzip|deflate|br)$/;

/** `ETag` and `Last-Modified` of a body, by which its server knows whether it has changed. */
type Validators = { etag?: string; lastModified?: string };
/** `isUnchanged`: the server has none but the one of the given validators; then there are no bytes. */
type FetchedBody = { url: string; bytes: Buffer; type?: string; validators?: Validators; isUnchanged?: true };
export type GuardedFetch = {
  /**
   * Gets the body of a public URL, under the rules of `Egress` at every redirect.
   * @throws AppError `source_refused` (not public, bad scheme), `source_unreachable`, `request_too_large`,
   * `source_unreadable` (pictures, sound, video).
   */
  get(url: string, signal: AbortSignal, known?: Validators): Promise<FetchedBody>;
  close(): Promise<void>;
};

/** Makes a fetcher. `timeoutMs` bounds a whole fetch with its redirects, `maxBytes` a body after decompression. */
export function makeGuardedFetch({ maxBytes, ...options }: EgressOptions & { maxBytes: number }): GuardedFetch {
  const egress = makeEgress(options);
  return {
    async get(url, signal, known = {}) {
      const inTime = AbortSignal.any([signal, AbortSignal.timeout(options.timeoutMs)]);
      try {
        return await follow(egress, url, { maxBytes, signal: inTime, known });
      } catch (error) {
        signal.throwIfAborted();
        throw asFetchError(error, { url, timeoutMs: options.timeoutMs });
      }
    },
    close: egress.close,
  };
}

type Limits = { maxBytes: number; signal: AbortSignal; known: Validators };

/** Longest validator that is kept, in characters. */
const MAX_VALIDATOR = 256;

function validatorsOf({ headers }: Response): Validators | undefined {
  const read = (name: string) => {
    const value = headers.get(name) ?? "";
    return value === "" || value.length > MAX_VALIDATOR ? undefined : value;
  };
  const found = defined({ etag: read("etag"), lastModified: read("last-modified") });
  return Object.keys(found).length === 0 ? undefined : found;
}

async function follow(egress: Egress, text: string, limits: Limits): Promise<FetchedBody> {
  const { known, maxBytes, signal } = limits;
  const conditions = defined({ "if-none-match": known.etag, "if-modified-since": known.lastModified });
  const headers = { accept: "*/*", "accept-encoding": "gzip, br", "user-agent": "switchyard", ...conditions };
  const isConditional = Object.keys(conditions).length > 0;
  let next = text;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
    const { url } = egress.check(next);
    const response = await egress.fetch(url, { headers, signal });
    if (response.status === 304 && isConditional) {
      await response.body?.cancel();
      return { url: url.href, bytes: Buffer.alloc(0), validators: known, isUnchanged: true };
    }
    const location = response.headers.get("location");
    if (!redirectStatuses.has(response.status) || location === null) return readBody(url, response, maxBytes);
    await response.body?.cancel();
    if (!URL.canParse(location, url.href)) throw rejectedUrl("It redirects to something that is not a URL.");
    next = new URL(location, url.href).href;
  }
  throw new AppError("source_unreachable", `The URL redirects more than ${MAX_REDIRECTS} times.`, { param: "url" });
}

/** Decompression happens as the body is read, so the limit on what is read bounds it. */
async function readBody({ href }: URL, response: Response, maxBytes: number): Promise<FetchedBody> {
  const problem = findProblem(response, maxBytes);
  if (problem) {
    await response.body?.cancel();
    throw problem;
  }
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of response.body ?? []) {
    size += part.length;
    if (size > maxBytes) throw tooLarge(maxBytes); // leaving the loop ends the connection
    parts.push(part);
  }
  const type = response.headers.get("content-type") ?? undefined;
  return { url: href, bytes: Buffer.concat(parts, size), ...defined({ type, validators: validatorsOf(response) }) };
}

function findProblem({ headers, status, ok }: Response, maxBytes: number): AppError | undefined {
  const type = headers.get("content-type") ?? "";
  const encoding = headers.get("content-encoding")?.toLowerCase().trim() ?? "";
  if (!ok) {
    const retryable = retryableStatuses.has(status);
    return new AppError("source_unreachable", `The URL answered with status ${status}.`, { param: "url", retryable });
  }
  if (mediaTypes.test(type)) {
    return new AppError("source_unreadable", `The URL holds ${type}, which is not a document.`);
  }
  if (!encodings.test(encoding)) {
    return new AppError("source_unreadable", `The URL's content encoding (${encoding}) is not known.`);
  }
  return Number(headers.get("content-length") ?? 0) > maxBytes ? tooLarge(maxBytes) : undefined;
}

function tooLarge(maxBytes: number): AppError {
  return new AppError("request_too_large", `The source is larger than ${sizeInWords(maxBytes)} (MAX_SOURCE_BYTES).`, {
    param: "url",
  });
}
