import { defined } from "../../lib/defined.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";

/** What a provider says of an error, as far as it does. `status` is the HTTP status that it names in the body. */
export type ProviderSays = { code?: string; message?: string; status?: number };

const MAX_MESSAGE = 500;
const MAX_CODE = 100;
/** Problems of one body that are named. */
const MAX_PROBLEMS = 5;
const MAX_DEPTH = 4;

/** What the body of an answer that is not 2xx says. Error pages of proxies are HTML: the status says all that we can know. */
export function readProblem(body: string): ProviderSays {
  const parsed = tryParseJson(body);
  const text = body.trim();
  if (parsed !== undefined) return readReported(parsed) ?? readFields(parsed) ?? {};
  return text === "" || /^[<{[]/.test(text) ? {} : { message: text.slice(0, MAX_MESSAGE).toWellFormed() };
}

/**
 * The error that a body or an event reports: OpenAI's and Anthropic's `error`, Ollama's text in its place, vLLM's
 * `object: "error"`, FastAPI's `detail`, Gemini's list of one; undefined where it reports none.
 */
export function readReported(value: unknown, depth = 0): ProviderSays | undefined {
  if (depth > MAX_DEPTH || typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) return readReported(value[0], depth + 1);
  const { error, detail, object, type } = Object(value);
  if (typeof error === "string" && error !== "") {
    const said = readFields(value);
    return { ...said, message: said?.message ?? error.slice(0, MAX_MESSAGE).toWellFormed() };
  }
  if (error) return readFields(error, depth + 1) ?? {};
  if (object === "error" || type === "error") return readFields(value, depth + 1) ?? {};
  return detail === undefined || detail === null ? undefined : readFields(value, depth + 1);
}

/** The fields of an error, by the names that servers have for them. */
function readFields(value: unknown, depth = 0): ProviderSays | undefined {
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return undefined;
  const { code, type, status, status_code, http_code, message, detail, msg, metadata } = Object(value);
  const inner = typeof message === "object" && message !== null ? readFields(message, depth + 1)?.message : undefined;
  const word = [code, type, status].find((one) => isWord(one)) ?? [code, status].find((one) => typeof one === "number");
  const said = [message, inner, toDetail(detail), msg].find((one) => typeof one === "string" && one !== "");
  const raw = Object(metadata).raw; // what OpenRouter's own provider said
  const text = typeof raw === "string" && raw !== "" ? `${said ?? ""} ${raw}`.trim() : said;
  const named = [status_code, http_code, code, status].map(Number).find((one) => one >= 400 && one < 600);
  return defined({
    code: word === undefined ? undefined : String(word).slice(0, MAX_CODE),
    message: typeof text === "string" ? text.slice(0, MAX_MESSAGE).toWellFormed() : undefined,
    status: named,
  });
}

const isWord = (value: unknown) => typeof value === "string" && value !== "";

/** FastAPI's `detail`: a text, or what is wrong with each field. */
function toDetail(detail: unknown): string | undefined {
  if (typeof detail === "string") return detail;
  if (!Array.isArray(detail)) return readFields(detail, MAX_DEPTH)?.message;
  const problems = detail.slice(0, MAX_PROBLEMS).flatMap((one) => {
    const { loc, msg } = Object(one);
    if (typeof msg !== "string") return typeof one === "string" ? [one] : [];
    const path = Array.isArray(loc) ? loc.filter((part) => part !== "body").join(".") : "";
    return [path === "" ? msg : `${path}: ${msg}`];
  });
  return problems.length === 0 ? undefined : problems.join("; ");
}

/** The statuses of errors that are named and not numbered: of OpenAI, Anthropic and Google. */
const statuses: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  invalid_argument: 400,
  badrequesterror: 400,
  context_length_exceeded: 400,
  failed_precondition: 400,
  invalid_prompt: 400,
  invalid_encrypted_content: 400,
  bio_policy: 400,
  value_error: 400,
  authentication_error: 401,
  invalid_api_key: 401,
  unauthenticated: 401,
  billing_error: 402,
  permission_error: 403,
  permission_denied: 403,
  not_found_error: 404,
  not_found: 404,
  model_not_found: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  rate_limit: 429,
  insufficient_quota: 429,
  resource_exhausted: 429,
  too_many_requests: 429,
  timeout_error: 504,
  deadline_exceeded: 504,
};

/** The status of an error whose answer has none of its own; undefined where nothing tells it. */
export const statusOfProblem = ({ code, status }: ProviderSays): number | undefined =>
  status ?? statuses[code?.toLowerCase() ?? ""] ?? (code?.includes("image") ? 400 : undefined); // OpenAI has many for pictures
