import { lookup as resolve } from "node:dns";
import type { LookupFunction } from "node:net";
import { Agent, Pool, fetch as undiciFetch } from "undici";
import { AppError } from "../lib/errors.ts";
import { inSpan, type SpanStart } from "../observe/tracing.ts";
import { checkUrl, HOW_TO_ALLOW, isPublicAddress } from "./address-rules.ts";
import { toDepthHeader } from "./call-scope.ts";
import { asFetchError } from "./fetch-errors.ts";

const CONNECT_TIMEOUT_MS = 10_000; // a host that does not accept the connection by then counts as unreachable
const MAX_HEADER_BYTES = 32_768;
/** An idle connection of a pool is kept for this long, in ms. */
const KEEP_ALIVE_MS = 30_000;

export type Egress = ReturnType<typeof makeEgress>;

/** `timeoutMs` bounds the wait for a response's head, and for each part of its body. */
export type EgressOptions = { allowOrigins: readonly string[]; timeoutMs: number; lookup?: LookupFunction };

/** Requests to other servers, at public addresses only. */
export function makeEgress({ allowOrigins, timeoutMs, lookup = resolve as LookupFunction }: EgressOptions) {
  const limits = { maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
  const guarded = new Agent({ ...limits, connect: { lookup: vetted(lookup), timeout: CONNECT_TIMEOUT_MS } });
  const open = new Agent({ ...limits, connect: { timeout: CONNECT_TIMEOUT_MS } });
  const plainFetch = undiciFetch as unknown as typeof fetch; // the same API; its types are of another version than Node's
  const check = (url: string, param?: string) => assertFetchable(url, allowOrigins, param);
  return {
    /** `isAllowed`: the operator lets its origin through. @throws AppError `source_refused`, of `param` or `url`. */
    check,
    /**
     * As the Fetch API's, but without following redirects: the caller judges those. Every address that a name resolves to
     * must be public unicast, and the connection goes to the address that was checked.
     * @throws AppError `source_refused`, `source_unreachable`; the signal's reason.
     */
    async fetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
      const dispatcher = check(String(url)).isAllowed ? open : guarded;
      try {
        const headers = new Headers(init.headers);
        for (const [name, value] of Object.entries(toDepthHeader())) headers.set(name, value);
        const guardedInit = { ...init, headers, redirect: "manual" as const, dispatcher }; // `dispatcher` is undici's own
        return await inSpan(toSpan(url, init), () => plainFetch(url, guardedInit as unknown as RequestInit));
      } catch (error) {
        init.signal?.throwIfAborted();
        throw asFetchError(error, { url, timeoutMs });
      }
    },
    close: async () => void (await Promise.all([guarded.destroy(), open.destroy()])),
  };
}

/** How a pool of connections is opened. `lookup` finds the addresses of a name. */
export type PoolOptions = {
  allowOrigins: readonly string[];
  connectMs: number;
  maxBytes: number;
  lookup?: LookupFunction;
};

/**
 * Lasting connections to the origin of a URL, under the rules of `Egress`: they hold for its text here, and for its addresses
 * at each connection. A response longer than `maxBytes` fails.
 * @throws AppError `source_refused`.
 */
export function openGuardedPool(url: string, options: PoolOptions): Pool {
  const { allowOrigins, connectMs, maxBytes, lookup = resolve as LookupFunction } = options;
  const { isAllowed } = assertFetchable(url, allowOrigins);
  const guard = isAllowed ? {} : { lookup: vetted(lookup) };
  return new Pool(new URL(url).origin, {
    connect: { timeout: connectMs, ...guard },
    bodyTimeout: 0, // its user watches the time of a body
    maxResponseSize: maxBytes,
    keepAliveTimeout: KEEP_ALIVE_MS,
  });
}

/** Checks a URL by its text. @throws AppError `source_refused`, which names `param`. */
export function assertFetchable(url: string, allowOrigins: readonly string[], param?: string) {
  const decision = checkUrl(url, allowOrigins);
  if ("refused" in decision) throw rejectedUrl(decision.refused, param);
  return decision;
}

export function rejectedUrl(reason: string, param = "url"): AppError {
  return new AppError("source_refused", `This URL is not fetched. ${reason}`, { param });
}

/** A lookup that returns a name's addresses only if all of them are public; the connection goes to what it returns. */
function vetted(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "", 0);
      const addresses = Array.isArray(found) ? found : [];
      const [first] = addresses;
      if (!first || !addresses.every(({ address }) => isPublicAddress(address))) {
        return callback(rejectedUrl(`Its host does not resolve to public addresses. ${HOW_TO_ALLOW}`), "", 0);
      }
      return options.all ? callback(null, addresses) : callback(null, first.address, first.family);
    });
  };
}

/** The request until the head of its response; its path and query stay out, because they may hold secrets. */
function toSpan(url: string | URL, { method = "GET" }: RequestInit): SpanStart {
  const attributes = { "http.request.method": method, "server.address": new URL(url).hostname };
  return { name: method, kind: "CLIENT", attributes };
}

/** Decodes by the `charset` of a content type, else as UTF-8; also where there is no such charset. */
function decoderFor(type: string | null) {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(type ?? "")?.[1];
  try {
    return new TextDecoder(charset);
  } catch (error) {
    if (error instanceof RangeError) return new TextDecoder();
    throw error;
  }
}

/** The first `limitBytes` of a body as text, in its own charset, and whether there is more. @throws the error of the connection. */
export async function readPrefix(response: Response, limitBytes: number): Promise<{ text: string; isCut: boolean }> {
  const decoder = decoderFor(response.headers.get("content-type"));
  let text = "";
  let left = limitBytes;
  for await (const part of response.body ?? []) {
    text += decoder.decode(part.subarray(0, left), { stream: true });
    left -= part.length;
    if (left < 0) return { text, isCut: true }; // leaving the loop ends the connection
  }
  return { text: text + decoder.decode(), isCut: false };
}
