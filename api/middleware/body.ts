import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import getRawBody from "raw-body";
import { AppError, invalidRequest } from "../../src/lib/errors.ts";
import { parseKeepingDigits } from "../../src/lib/exact-json.ts";
import { sizeInWords } from "../../src/lib/size-in-words.ts";
import type { ApiContext } from "../context.ts";

/** Deeper nesting than any valid body has; walking or printing a deeper one would exhaust the stack. */
const MAX_DEPTH = 100;
/** More fields than any valid object has: the largest free one, a workflow's input, has no room for this many. */
const MAX_FIELDS = 52_000;
/** Most fields of all objects of a body together, and most items of all its lists. */
const MAX_BODY_FIELDS = 200_000;
/** Most bytes that we discard of a body that was refused for its size, so that the client can read the response. */
const MAX_DISCARDED_BYTES = 64 << 20;

const jsonType = /^application\/(?:[\w.+-]+\+)?json$/;

/** The media type of a request without its parameters, in lower case; empty when it has none. */
export function mediaType(ctx: ApiContext): string {
  return (ctx.get("content-type").split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** Whether the request has a body. */
export function hasBody(request: IncomingMessage): boolean {
  const { headers } = request;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** The largest JSON body that a route takes, in bytes, and the setting that says so. */
export type JsonLimit = { bytes: number; setting?: string; keepsDigits?: boolean };

/** A JSON body within `limit`, whose bytes `kept` keeps. @throws AppError `unsupported_media_type`, `request_too_large`, `malformed_json`. */
export async function readJsonBody(ctx: ApiContext, limit: JsonLimit, kept?: { bytes?: Buffer }): Promise<unknown> {
  if (ctx.req.headers["content-type"] !== "application/json") requireJsonType(ctx);
  const bytes = await readBytes(ctx, limit);
  rejectCostlyShape(bytes);
  if (!isUtf8(bytes)) throw new AppError("malformed_json", "The body is not valid UTF-8.");
  if (kept) kept.bytes = bytes;
  return parseJson(bytes.toString("utf8"), limit.keepsDigits ? parseKeepingDigits : JSON.parse);
}

function requireJsonType(ctx: ApiContext): void {
  if (!jsonType.test(mediaType(ctx))) {
    throw new AppError("unsupported_media_type", "The body must be JSON, with content-type application/json.");
  }
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(ctx.get("content-type"))?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    throw new AppError("unsupported_media_type", "JSON must be encoded as UTF-8.");
  }
}

async function readBytes(ctx: ApiContext, { bytes, setting }: JsonLimit): Promise<Buffer> {
  rejectEncodedBody(ctx);
  if (Number(ctx.get("content-length")) > bytes) throw tooLarge(ctx, bytes, setting);
  continueIfExpected(ctx);
  const received = takeReceived(ctx);
  if (received !== null) return received;
  try {
    return await getRawBody(ctx.req, { limit: bytes, length: ctx.get("content-length") || null });
  } catch (error) {
    const type = error instanceof Error && "type" in error ? error.type : undefined;
    if (type === "entity.too.large") throw tooLarge(ctx, bytes, setting);
    if (type === "request.aborted") throw new AppError("client_closed", "The client went away.", { cause: error });
    throw new AppError("malformed_json", "The body could not be read.", { cause: error });
  }
}

/** A body that arrived together with its head, as small ones do. Null when some of it is still to come. */
function takeReceived({ req }: ApiContext): Buffer | null {
  const isWhole = req.readableLength > 0 && req.readableLength === Number(req.headers["content-length"]);
  return isWhole ? req.read() : null;
}

/** Compressed bodies are refused: a few bytes of them can hold gigabytes. @throws AppError `unsupported_media_type` */
export function rejectEncodedBody(ctx: ApiContext): void {
  const encoding = ctx.get("content-encoding");
  if (encoding !== "" && encoding.toLowerCase() !== "identity") {
    throw new AppError("unsupported_media_type", "Compressed bodies are not supported.");
  }
}

/** Lets a client that sent `Expect: 100-continue` continue; one that was refused before never sends its body. */
export function continueIfExpected(ctx: ApiContext): void {
  if (ctx.get("expect").toLowerCase() === "100-continue") ctx.res.writeContinue();
}

/** The error of a body over its limit. What the client still sends is discarded, up to a bound; then it is cut. */
export function tooLarge(ctx: ApiContext, limitBytes: number, setting?: string, what = "body"): AppError {
  const { req } = ctx;
  let discarded = 0;
  req.on("data", (chunk: Buffer) => {
    discarded += chunk.length;
    if (discarded > MAX_DISCARDED_BYTES) req.destroy();
  });
  req.resume();
  ctx.state.headers.connection = "close";
  const name = setting === undefined ? "" : ` (${setting})`;
  const message = `The ${what} is larger than ${sizeInWords(limitBytes)}${name}.`;
  return new AppError("request_too_large", message, { details: { limitBytes } });
}

/** Bytes of a body that is parsed whatever its shape: that takes some milliseconds at most. */
const ALWAYS_PARSED_BYTES = 32 << 10;
const [quote, backslash, colon, comma, bracket, brace] = [0x22, 0x5c, 0x3a, 0x2c, 0x5b, 0x7b]; // in UTF-8 they are part of no other character
const CLOSES = 2; // the closing bracket and brace are that much above the opening ones

/**
 * Refuses a body with more fields, list items or levels than any valid one has, before it is parsed: parsing and validating a
 * million of them would hold the event loop for seconds. A colon outside of strings is a field; each value but a field's begins
 * with an opening or stands behind a comma.
 */
function rejectCostlyShape(bytes: Buffer): void {
  if (bytes.length <= ALWAYS_PARSED_BYTES) return;
  let [fields, values, depth] = [0, 0, 0];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === quote) at = endOfString(bytes, at);
    else if (byte === colon) fields += 1;
    else if (byte === comma) values += 1;
    else if (byte === bracket || byte === brace) [depth, values] = [depth + 1, values + 1];
    else if (byte === bracket + CLOSES || byte === brace + CLOSES) depth -= 1;
    if (depth > MAX_DEPTH) throw tooDeep();
    if (fields > MAX_BODY_FIELDS) throw oddShape(`The body has more than ${MAX_BODY_FIELDS} fields.`);
    if (values - fields > MAX_BODY_FIELDS)
      throw oddShape(`The lists of the body have more than ${MAX_BODY_FIELDS} items.`);
  }
}

/** The place of the quote that ends a string: one after an odd number of backslashes does not. */
function endOfString(bytes: Buffer, begin: number): number {
  for (let at = bytes.indexOf(quote, begin + 1); at >= 0; at = bytes.indexOf(quote, at + 1)) {
    let before = at - 1;
    while (bytes[before] === backslash) before -= 1;
    if ((at - before) % 2 === 1) return at;
  }
  return bytes.length;
}

function parseJson(text: string, parse: (text: string) => unknown): unknown {
  let value: unknown;
  try {
    value = parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  } catch (error) {
    throw new AppError("malformed_json", `The body is not valid JSON${positionIn(error)}.`, { cause: error });
  }
  rejectOddShape(value);
  return value;
}

/** The position that V8 reports of a syntax error; not its message, which quotes the body. */
function positionIn(error: unknown): string {
  const position = error instanceof Error ? /at position (\d+)/.exec(error.message)?.[1] : undefined;
  return position === undefined ? "" : ` (at character ${Number(position) + 1})`;
}

/** Refuses a body that is nested too deeply, or has too many fields in one object: later code walks all of it. */
function rejectOddShape(value: unknown, depth = 0): void {
  if (typeof value !== "object" || value === null) return;
  if (depth > MAX_DEPTH) throw tooDeep();
  if (Array.isArray(value)) {
    for (const item of value) rejectOddShape(item, depth + 1);
    return;
  }
  const names = Object.keys(value);
  if (names.length > MAX_FIELDS) throw oddShape(`An object of the body has more than ${MAX_FIELDS} fields.`);
  // Several times as fast as `Object.values` for an object of very many fields.
  for (const name of names) rejectOddShape(Reflect.get(value, name), depth + 1);
}

const tooDeep = () => oddShape(`The body is nested deeper than ${MAX_DEPTH} levels.`);
const oddShape = (message: string) => invalidRequest("body", message);
