import { isUtf8 } from "node:buffer";
import type { StreamGuard } from "../../guards/stream-guard.ts";
import { AppError, type ErrorView, toErrorView } from "../../lib/errors.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";
import { type PolicyGuard, takeBy } from "../../tenancy/guard-policies.ts";

/** A longer line is read as a part of a text, in characters. */
const MAX_LINE = 16 << 20;
/** Characters of a file that are read at a time. */
const MAX_PIECE = 8_000;
/** How files begin that are no texts although their bytes may be UTF-8. */
const noText = /^%PDF-|^\{\\rtf|\0/;

/** What a line of a batch has in the place of its body, if guards have blocked that: the error of its request. */
const BLOCKED = "guardError";

/** A request of a batch as it may be kept: masked; of one that is blocked its id and its error alone. */
async function guardLine(guard: PolicyGuard, line: object): Promise<object> {
  try {
    return await takeBy(guard, "input", line, { isWire: true });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "compliance_blocked") throw error;
    const { custom_id, method, url } = line as Record<string, unknown>; // as far as it has them
    const body = { [BLOCKED]: toErrorView(error) };
    return takeBy(guard, "input", { custom_id, ...(url === undefined ? { params: body } : { method, url, body }) });
  }
}

/** The same of each. */
export async function guardLines(guard: PolicyGuard, lines: readonly object[]): Promise<object[]> {
  const guarded: object[] = [];
  for (const line of lines) guarded.push(await guardLine(guard, line));
  return guarded;
}

/** @throws AppError `compliance_blocked` for the body of a request that guards blocked when it was uploaded. */
export function requireUnblocked(body: unknown): void {
  const error: ErrorView | undefined = Object(body)[BLOCKED];
  if (error === undefined) return;
  const message = "Your guards did not let this request through when it was uploaded. Nothing of it was kept.";
  throw new AppError("compliance_blocked", message, { details: Object(error).details });
}

/**
 * The bytes of an upload as they may be kept. The lines of a batch are guarded as they go to a model, one by one; another text as a
 * document. What is no text passes if the policy says so of what cannot be read.
 * @throws AppError `compliance_blocked`, `unavailable`.
 */
export async function* guardUpload(guard: PolicyGuard, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const reader = makeTextReader(guard);
  let isText = true;
  let begun: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes: Buffer = begun.length > 0 ? Buffer.concat([begun, chunk]) : chunk;
    const whole = isText ? bytes.subarray(0, wholeCharacters(bytes)) : bytes;
    begun = bytes.subarray(whole.length);
    const text = isText && isUtf8(whole) ? whole.toString("utf8") : undefined;
    if (text !== undefined && !(reader.isAtStart() && noText.test(text))) {
      yield Buffer.from(await reader.push(text));
      continue;
    }
    if (!guard.takesMedia) guard.refuseMedia("file");
    isText = false;
    yield Buffer.concat([Buffer.from(await reader.end()), bytes]);
    begun = Buffer.alloc(0);
  }
  if (begun.length > 0 && !guard.takesMedia) guard.refuseMedia("file");
  yield Buffer.concat([Buffer.from(await reader.end()), begun]);
}

/** Up to where the bytes of UTF-8 are whole characters. */
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= 3; back += 1) {
    const byte = bytes.at(-back) ?? 0;
    if (byte < 0x80) break;
    if (byte < 0xc0) continue; // within a character
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** Guards the text of a file that comes in parts. */
function makeTextReader(guard: PolicyGuard) {
  let held = "";
  let isStarted = false;
  let whole: StreamGuard | undefined;
  const toLine = async (line: string) => {
    const parsed = tryParseJson(line);
    if (typeof parsed === "object" && parsed !== null) return JSON.stringify(await guardLine(guard, parsed));
    return (await guard.take([{ place: "input", field: "file", text: line }]))[0] ?? "";
  };
  const pushInTurns = async (stream: StreamGuard, text: string) => {
    let said = "";
    for (let at = 0; at < text.length; at += MAX_PIECE) {
      const piece = text.slice(at, at + MAX_PIECE);
      said += await guard.inTurn(() => stream.push(piece));
    }
    return said;
  };
  /** Whether a file is of requests: its first line is one. */
  const isOfRequests = (line: string) => "custom_id" in Object(tryParseJson(line));
  const readLines = async (hasEnded: boolean): Promise<string> => {
    let said = "";
    for (let end = held.indexOf("\n"); ; end = held.indexOf("\n")) {
      const isLast = end < 0;
      if (isLast && !hasEnded && held.length < MAX_LINE) return said;
      const line = isLast ? held : held.slice(0, end);
      if (!isStarted && line.trim() !== "" && !isOfRequests(line)) whole = guard.stream("ingest", "file");
      isStarted ||= line.trim() !== "";
      if (whole) {
        said += await pushInTurns(whole, held);
        held = "";
        return said;
      }
      said += line.trim() === "" ? line : await toLine(line);
      if (isLast) {
        held = "";
        return said;
      }
      said += "\n";
      held = held.slice(end + 1);
    }
  };
  return {
    isAtStart: () => !isStarted,
    async push(text: string): Promise<string> {
      if (whole) return pushInTurns(whole, text);
      held += text;
      return readLines(false);
    },
    async end(): Promise<string> {
      const said = held === "" ? "" : await readLines(true);
      return said + (whole?.end() ?? "");
    },
  };
}
