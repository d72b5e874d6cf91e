import { z } from "zod";
import { AppError } from "../../../errors.ts";
import type { FileBatchFault } from "../../../store/file-store.ts";
import { tryParseJson } from "../../../try-parse-json.ts";
import { embeddingsBodySchema } from "../../embeddings-schemas.ts";
import { messagesBodySchema } from "../../messages-api/schemas.ts";
import { openAiChatBodySchema } from "../../openai-schemas.ts";

/** Requests of one batch. */
export const MAX_FILE_LINES = 10_000;
/** Faults that are reported of one file. */
const MAX_FAULTS = 100;

/** What a line of a file may request. */
export const batchEndpoints = ["/v1/chat/completions", "/v1/embeddings"] as const;
/** What each request of a batch of messages is for. */
export const messagesEndpoint = "/v1/messages";
export type BatchEndpoint = (typeof batchEndpoints)[number] | typeof messagesEndpoint;

const bodyOf = {
  [messagesEndpoint]: messagesBodySchema,
  "/v1/chat/completions": openAiChatBodySchema,
  "/v1/embeddings": embeddingsBodySchema,
};

const lineSchema = z.object({
  custom_id: z.string().min(1).max(200),
  method: z.literal("POST"),
  url: z.string(),
  body: z.unknown(),
});

/** A request of a file, its body not yet held against its endpoint's schema. */
export type FileLine = { customId: string; body: unknown };

const messagesSchema = z.object({ requests: z.array(z.object({ custom_id: z.string(), params: z.unknown() })) });

/** The requests of a batch of messages, whose body was checked when it was made. */
function readMessages(text: string): FileLine[] {
  const { requests } = messagesSchema.parse(JSON.parse(text));
  return requests.map(({ custom_id: customId, params: body }) => ({ customId, body }));
}

/** The requests of a file, and what is wrong with it as a whole. A body that does not fit its endpoint fails its own line. */
export function readLines(text: string, endpoint: BatchEndpoint): { lines: FileLine[]; faults: FileBatchFault[] } {
  const lines: FileLine[] = [];
  const faults: FileBatchFault[] = [];
  if (endpoint === messagesEndpoint) return { lines: text === "" ? [] : readMessages(text), faults };
  const seen = new Set<string>();
  const fault = (code: string, message: string, line: number | null, param: string | null = null) => {
    if (faults.length < MAX_FAULTS) faults.push({ code, message, line, param });
  };
  for (const [index, raw] of text.split("\n").entries()) {
    if (raw.trim() === "") continue;
    const number = index + 1;
    const parsed = lineSchema.safeParse(tryParseJson(raw));
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      fault("invalid_json_line", `This line is no request: ${issue?.message}`, number, String(issue?.path[0] ?? ""));
      continue;
    }
    const { custom_id: customId, url, body } = parsed.data;
    if (url !== endpoint) fault("mismatched_url", `The url is not that of the batch, ${endpoint}.`, number, "url");
    if (seen.has(customId)) fault("duplicate_custom_id", "The custom_id was used before.", number, "custom_id");
    seen.add(customId);
    lines.push({ customId, body });
  }
  if (lines.length === 0 && faults.length === 0) fault("empty_file", "The file holds no requests.", null);
  if (lines.length > MAX_FILE_LINES)
    fault("too_many_requests", `A file holds at most ${MAX_FILE_LINES} requests.`, null);
  return { lines, faults };
}

/** The body of a line, by its endpoint's schema. @throws AppError `invalid_request` when it does not fit. */
export function readBody<E extends BatchEndpoint>(endpoint: E, body: unknown): z.output<(typeof bodyOf)[E]> {
  const parsed = bodyOf[endpoint].safeParse(body);
  if (parsed.success) return parsed.data as z.output<(typeof bodyOf)[E]>; // the endpoint's own schema
  const [issue] = parsed.error.issues;
  throw new AppError("invalid_request", `${issue?.path.join(".") || "body"}: ${issue?.message}`);
}
