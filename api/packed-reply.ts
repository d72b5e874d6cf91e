import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { JsonReply } from "./route.ts";
import { etagOf, isNamed } from "./routes/models.ts";

/** A text that many requests get, compressed once. */
export type Packed = { bytes: Buffer; zipped: Buffer; etag: string };

const compress = promisify(gzip);

export async function pack(text: string): Promise<Packed> {
  const bytes = Buffer.from(text);
  return { bytes, zipped: await compress(bytes), etag: etagOf(text) };
}

/** The reply with a text: 304 to a client that has it, compressed for one that accepts that. */
export function toPackedReply(
  { bytes, zipped, etag }: Packed,
  { header, headers }: { header(name: string): string | undefined; headers: Record<string, string> },
): JsonReply {
  const caching = { "cache-control": "no-cache", ...headers, etag, vary: "accept-encoding" };
  if (isNamed(header("if-none-match"), etag)) return { status: 304, headers: caching };
  const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(header("accept-encoding") ?? "");
  if (!takesGzip) return { status: 200, headers: caching, body: bytes };
  return { status: 200, headers: { ...caching, "content-encoding": "gzip" }, body: zipped };
}
