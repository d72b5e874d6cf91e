import { z } from "zod";
import { embeddingsBodySchema } from "../../gateway/embeddings-schemas.ts";
import type { WorkContext } from "../../jobs/work.ts";
import { AppError } from "../../lib/errors.ts";
import { hashDigits } from "../../lib/ids.ts";
import { groupsInTurns } from "../../lib/in-slices.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";
import type { FileBatchFault } from "../../store/file-store.ts";
import { openAiChatBodySchema } from "../../surfaces/chat-completions/openai-schemas.ts";
import { messagesBodySchema } from "../../surfaces/messages/schemas.ts";
import { responsesBodySchema } from "../../surfaces/responses/request-schemas.ts";

/** Requests of one file, as at OpenAI, and of one batch of messages. */
export const MAX_FILE_LINES = 50_000;
export const MAX_MESSAGE_REQUESTS = 10_000;
/** Faults that are reported of one file. */
const MAX_FAULTS = 100;

/** Most commas and brackets of one line: the values that reading it makes are bounded by them. */
const MAX_SEPARATORS = 1_000_000;
const [COMMA, BRACKET, BRACE] = [0x2c, 0x5b, 0x7b];

/** What a line of a file may request. */
export const batchEndpoints = ["/v1/responses", "/v1/chat/completions", "/v1/embeddings"] as const;
/** What each request of a batch of messages is for. */
export const messagesEndpoint = "/v1/messages";
export type BatchEndpoint = (typeof batchEndpoints)[number] | typeof messagesEndpoint;

const bodyOf = {
  [messagesEndpoint]: messagesBodySchema,
  "/v1/responses": responsesBodySchema,
  "/v1/chat/completions": openAiChatBodySchema,
  "/v1/embeddings": embeddingsBodySchema,
};

const lineSchema = z.object({
  custom_id: z.string().min(1).max(200),
  method: z.literal("POST"),
  url: z.string(),
  body: z.unknown(),
});

/** A request of a file, its body not yet held against its endpoint's schema. `characters`: of its line; 0 where it has none. */
export type FileLine = { customId: string; body: unknown; characters: number };

const messagesSchema = z.object({ requests: z.array(z.object({ custom_id: z.string(), params: z.unknown() })) });

/** The requests of a batch of messages, whose body was checked when it was made. */
async function* readMessages(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<FileLine> {
  const parts = await Array.fromAsync(chunks);
  if (parts.length === 0) return;
  const { requests } = messagesSchema.parse(JSON.parse(Buffer.concat(parts).toString("utf8")));
  for (const { custom_id: customId, params: body } of requests) yield { customId, body, characters: 0 };
}

/** The JSON of a line; undefined of a text that is none, or would be more values than a request needs. */
function parseLine(raw: string): unknown {
  let separators = 0;
  // A shorter line cannot have as many.
  for (let at = 0; raw.length > MAX_SEPARATORS && at < raw.length; at += 1) {
    const code = raw.charCodeAt(at);
    if (code === COMMA || code === BRACKET || code === BRACE) separators += 1;
  }
  return separators > MAX_SEPARATORS ? undefined : tryParseJson(raw);
}

/** Does a part of the batch's work in the turn of its tenant. */
type Share = WorkContext["share"];

/** The requests of a batch, one after the other, a few in each turn. Lines that are none are left out: `checkLines` finds them. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  endpoint: BatchEndpoint,
  share: Share,
): AsyncGenerator<FileLine> {
  if (endpoint === messagesEndpoint) return yield* readMessages(chunks);
  for await (const group of groupsInTurns(parseLines(chunks), share))
    for (const { raw = "", parsed } of group)
      if (parsed?.success) yield { customId: parsed.data.custom_id, body: parsed.data.body, characters: raw.length };
}

type ParsedLine = { raw: string | undefined; parsed?: ReturnType<typeof lineSchema.safeParse> };

/** The lines of a text, parsed but for empty ones; `raw` is undefined where one is too long. */
async function* parseLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ParsedLine> {
  for await (const raw of cutLines(chunks))
    yield raw?.trim() === "" ? { raw } : { raw, parsed: lineSchema.safeParse(parseLine(raw ?? "")) };
}

/**
 * How many requests a batch has, and what is wrong with it as a whole; looked at in turns. A body that does not fit its endpoint
 * fails its own line.
 */
export async function checkLines(
  chunks: AsyncIterable<Uint8Array>,
  endpoint: BatchEndpoint,
  share: Share,
): Promise<{ total: number; faults: FileBatchFault[] }> {
  const checks = makeChecks(endpoint);
  if (endpoint === messagesEndpoint) {
    let total = 0;
    for await (const _line of readMessages(chunks)) total += 1;
    return { total, faults: [] };
  }
  const checked = async function* () {
    for await (const line of parseLines(chunks)) {
      yield;
      if (!checks.goesOn(line)) return; // the batch fails, whatever else is in its file
    }
  };
  for await (const _group of groupsInTurns(checked(), share));
  return checks.end();
}

/** The checks of a file's lines, one after the other. */
function makeChecks(endpoint: BatchEndpoint) {
  const faults: FileBatchFault[] = [];
  const seen = new Set<string>();
  let [number, total] = [0, 0];
  const fault = (code: string, message: string, line: number | null, param: string | null = null) => {
    if (faults.length < MAX_FAULTS) faults.push({ code, message, line, param });
  };
  return {
    /** Looks at the next line; false where no further one is looked at. */
    goesOn({ raw, parsed }: ParsedLine): boolean {
      number += 1;
      if (number > MAX_LINES) {
        fault("too_many_lines", `A file has at most ${MAX_LINES} lines, empty ones included.`, null);
        return false;
      }
      if (parsed === undefined) return true;
      if (!parsed.success) {
        const [issue] = parsed.error.issues;
        const why = raw === undefined ? "it is too long" : issue?.message;
        fault("invalid_json_line", `This line is no request: ${why}`, number, String(issue?.path[0] ?? ""));
        return faults.length < MAX_FAULTS;
      }
      const { custom_id: customId, url } = parsed.data;
      if (url !== endpoint) fault("mismatched_url", `The url is not that of the batch, ${endpoint}.`, number, "url");
      const known = hashDigits(customId); // an id has 200 characters
      if (seen.has(known)) fault("duplicate_custom_id", "The custom_id was used before.", number, "custom_id");
      seen.add(known);
      total += 1;
      if (total > MAX_FILE_LINES) fault("too_many_requests", `A file holds at most ${MAX_FILE_LINES} requests.`, null);
      return total <= MAX_FILE_LINES && faults.length < MAX_FAULTS;
    },
    end() {
      if (total === 0 && faults.length === 0) fault("empty_file", "The file holds no requests.", null);
      return { total, faults };
    },
  };
}

/** The body of a line, by its endpoint's schema. @throws AppError `invalid_request` when it does not fit. */
export function readBody<E extends BatchEndpoint>(endpoint: E, body: unknown): z.output<(typeof bodyOf)[E]> {
  const parsed = bodyOf[endpoint].safeParse(body);
  if (parsed.success) return parsed.data as z.output<(typeof bodyOf)[E]>; // the endpoint's own schema
  const [issue] = parsed.error.issues;
  throw new AppError("invalid_request", `${issue?.path.join(".") || "body"}: ${issue?.message}`);
}

/** Longest line that is read, in bytes: a request stands in one record of the store, which takes none above 16 MB. */
const MAX_LINE_BYTES = 13 << 20;
const NEWLINE = 0x0a;
/** Most lines of a text that are read, empty ones included: twice the requests of a file. */
const MAX_LINES = 100_000;

/**
 * The lines of a text in UTF-8, one after the other, and one more than `MAX_LINES` at most; undefined in the place of one that
 * is too long.
 */
async function* cutLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string | undefined> {
  let lines = 0;
  let parts: Uint8Array[] = [];
  let size = 0;
  const add = (part: Uint8Array) => {
    size += part.length;
    if (size > MAX_LINE_BYTES) parts = [];
    else parts.push(part);
  };
  const take = () => {
    const line = size > MAX_LINE_BYTES ? undefined : Buffer.concat(parts).toString("utf8");
    [parts, size] = [[], 0];
    return line;
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, end));
      from = end + 1;
      lines += 1;
      yield take();
      if (lines > MAX_LINES) return;
    }
    add(chunk.subarray(from));
  }
  if (size > 0) yield take();
}
