import type { LookupFunction } from "node:net";
import { fetch as undiciFetch } from "undici";
import { inSpan, type SpanStart } from "../tracing.ts";
import { asFetchError, assertFetchable, makeAgents } from "./guarded-fetch.ts";

/** Requests of any kind to the outside, under the same rules as `GuardedFetch`. */
export type GuardedRequest = {
  /** @throws AppError `source_refused` for a URL that its text alone rules out; it names the field `param`, else `url`. */
  check(url: string, param?: string): URL;
  /**
   * As the Fetch API's, but to public addresses only, and without following redirects: those are the caller's to judge.
   * @throws AppError `source_refused`, `source_unreachable`; the signal's reason.
   */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
  close(): Promise<void>;
};

/** `timeoutMs` bounds the wait for an answer's head, and for each part of its body. */
export function makeGuardedRequest(options: {
  allowOrigins: readonly string[];
  timeoutMs: number;
  lookup?: LookupFunction;
}): GuardedRequest {
  const { guarded, open } = makeAgents(options);
  const outsideFetch = undiciFetch as unknown as typeof fetch; // the same API; its types are of another version than Node's
  return {
    check: (url, param) => assertFetchable(url, options.allowOrigins, param).url,
    async fetch(url, init = {}) {
      const { isAllowed } = assertFetchable(String(url), options.allowOrigins);
      try {
        const guardedInit = { ...init, redirect: "manual" as const, dispatcher: isAllowed ? open : guarded };
        // `dispatcher` is undici's own
        return await inSpan(toSpan(url, init), () => outsideFetch(url, guardedInit as unknown as RequestInit));
      } catch (error) {
        init.signal?.throwIfAborted();
        throw asFetchError(error, options.timeoutMs);
      }
    },
    close: async () => {
      await Promise.all([guarded.destroy(), open.destroy()]);
    },
  };
}

/** The request until its answer's head; its path and query stay out, they may hold secrets. */
function toSpan(url: string | URL, { method = "GET" }: RequestInit): SpanStart {
  const attributes = { "http.request.method": method, "server.address": new URL(url).hostname };
  return { name: method, kind: "CLIENT", attributes };
}
