import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { defined, type WithoutNulls, withoutNulls } from "../../lib/defined.ts";
import { invalidRequest } from "../../lib/errors.ts";
import type { WirePart } from "../message-schemas.ts";
import { type Content, type ContentPart, type Message, toContent, toTurn } from "../messages.ts";
import { defaultModelAlias } from "../providers/edge/models.ts";
import type { CompletionRequest, ToolDefinition } from "../providers/provider.ts";
import type { ChatBody } from "../schemas.ts";

/** A chat as the rest of the product asks for it. `model` may be an alias or `auto`. */
export type ChatRequest = Omit<CompletionRequest, "canReason"> & {
  /** The temperature of models that take this one; others answer at their own, where `temperature` would be refused. */
  preferredTemperature?: number;
  /** Put before the messages as a system message. */
  systemPrompt?: string;
  options?: ChatOptions;
};

/** What is done with a chat on its way. Without `cache`, a chat at temperature 0 is cached. */
export const chatOptionsSchema = z.object({
  compress: z.boolean().exactOptional(),
  cache: z.boolean().exactOptional(),
  cacheTtlSeconds: z.number().exactOptional(),
  /** Reject a setting that the model does not take, instead of adjusting it. */
  strict: z.boolean().exactOptional(),
  /** Whether the response of a chat in a batch is to say what was done with it. */
  debug: z.boolean().exactOptional(),
});
export type ChatOptions = z.output<typeof chatOptionsSchema>;

/**
 * The request that a body of `POST /ai/chat` makes.
 * @throws AppError `invalid_request` for a setting that is given by both of its names, and for a choice of a tool that is not
 * given.
 */
export function toChatRequest(body: ChatBody): ChatRequest {
  const given = withoutNulls(body);
  const { stop } = given;
  const format = either(given, "responseFormat", "response_format");
  const tools = given.tools?.map((tool): ToolDefinition => withoutNulls(tool.function));
  return defined({
    messages: body.messages.map(toMessage),
    model: given.model ?? defaultModelAlias,
    temperature: given.temperature,
    maxTokens: either(given, "maxTokens", "max_tokens"),
    systemPrompt: given.systemPrompt,
    tools,
    ...toToolChoice(either(given, "toolChoice", "tool_choice"), tools),
    topP: either(given, "topP", "top_p"),
    stop: typeof stop === "string" ? [stop] : stop?.length === 0 ? undefined : stop,
    seed: given.seed,
    responseFormat: format?.type === "text" ? undefined : format, // text is what every model writes
    effort: either(given, "reasoningEffort", "reasoning_effort"),
    verbosity: given.verbosity,
    parallelToolCalls: either(given, "parallelToolCalls", "parallel_tool_calls"),
    metadata: given.metadata,
    user: given.user || undefined,
    safetyIdentifier: either(given, "safetyIdentifier", "safety_identifier") || undefined,
    serviceTier: either(given, "serviceTier", "service_tier"),
    promptCacheKey: either(given, "promptCacheKey", "prompt_cache_key") || undefined,
    presencePenalty: given.presence_penalty,
    frequencyPenalty: given.frequency_penalty,
    logitBias: given.logit_bias,
    prediction: given.prediction,
    ...toLogprobs(given),
  });
}

/** @throws AppError `invalid_request` for other tokens without those of the answer. */
function toLogprobs({ logprobs, top_logprobs: others }: WithoutNulls<ChatBody>) {
  if (logprobs === true) return { logprobs, topLogprobs: others };
  if (others) throw invalidRequest("top_logprobs", "top_logprobs needs logprobs: true.");
  return {};
}

/** A setting that has two names. @throws AppError `invalid_request` for two values that differ. */
function either<B, C extends keyof B, S extends keyof B>(given: B, camel: C, snake: S): B[C] | B[S] {
  const value = given[camel];
  const other = given[snake];
  if (value !== undefined && other !== undefined && !isDeepStrictEqual(value, other)) {
    const names = `${String(camel)} and ${String(snake)}`;
    throw invalidRequest(String(snake), `${names} are the same setting and must not differ.`);
  }
  return value ?? other;
}

function toMessage(message: ChatBody["messages"][number], place: number): Message {
  if (message.role === "tool")
    return { role: "tool", content: readContent(message.content), toolCallId: message.tool_call_id };
  if (message.role === "user") return { role: "user", content: readContent(message.content) };
  if (message.role === "system") return { role: "system", content: toText(message.content) };
  const calls = message.tool_calls ?? message.toolCalls ?? undefined;
  if (calls === undefined && (message.content ?? undefined) === undefined) {
    throw invalidRequest(`messages[${place}].content`, "A message without tool calls needs content.");
  }
  const content = toText(message.content ?? "");
  const toolCalls = calls?.map(({ id, function: called }) => ({ id, ...called }));
  const details = message.reasoning_details ?? [];
  const parts =
    details.length === 0
      ? undefined
      : toTurn(
          content,
          toolCalls ?? [],
          details.map(({ index, ...part }) => ({ index, part })),
        );
  return defined({ role: "assistant" as const, content, toolCalls, parts });
}

const readContent = (content: string | readonly WirePart[]): Content =>
  typeof content === "string" ? content : toContent(content.map(toPart));

const toText = (content: string | readonly { text: string }[]) =>
  typeof content === "string" ? content : content.map((part) => part.text).join("\n");

function toPart(part: WirePart): ContentPart {
  if (part.type === "text") return part;
  if (part.type === "image_url") return { type: "image", ...withoutNulls(part.image_url) };
  const { filename, file_data: data, file_url: url } = part.file;
  return defined({ type: "file" as const, url: data ?? url ?? "", name: filename ?? undefined });
}

type Choice = Pick<CompletionRequest, "toolChoice" | "allowedTools">;

function toToolChoice(wanted: WithoutNulls<ChatBody>["tool_choice"], tools: ToolDefinition[] | undefined): Choice {
  // Without tools, "none" says nothing, and some servers refuse it.
  if (wanted === undefined || (wanted === "none" && tools === undefined)) return {};
  const names = typeof wanted === "string" ? [] : namesIn(wanted);
  const given = new Set(tools?.map(({ name }) => name));
  if (tools === undefined || !names.every((name) => given.has(name)))
    throw invalidRequest("tool_choice", "tool_choice asks for a tool that tools does not hold.");
  if (typeof wanted === "string") return { toolChoice: wanted };
  if (wanted.type === "function") return { toolChoice: wanted.function };
  return { toolChoice: wanted.allowed_tools.mode, allowedTools: names };
}

function namesIn(choice: Exclude<NonNullable<ChatBody["tool_choice"]>, string>): string[] {
  const functions = choice.type === "function" ? [choice] : choice.allowed_tools.tools;
  return functions.map((one) => one.function.name);
}

const HEADER = "x-svc-options";
/** An answer is kept for a day at most. */
const MAX_TTL_SECONDS = 86_400;

/**
 * Parses `x-svc-options`: `key=value` pairs separated by `;` or `,`.
 * @throws AppError `invalid_request` for an unknown option or a value that it does not take.
 */
export function parseSvcOptions(header: string | undefined): ChatOptions {
  const options: ChatOptions = {};
  if (header === undefined) return options;
  for (const pair of header.split(/[;,]/)) {
    if (pair.trim() === "") continue;
    const [key = "", value = ""] = pair.split("=", 2).map((part) => part.trim().toLowerCase());
    if (key === "compress") options.compress = readFlag(key, value);
    else if (key === "cache") options.cache = readFlag(key, value);
    else if (key === "cache-ttl") options.cacheTtlSeconds = readSeconds(key, value);
    else if (key === "strict") options.strict = readFlag(key, value);
    else
      throw reject(`has no option ${JSON.stringify(key.slice(0, 50))}; it knows compress, cache, cache-ttl and strict`);
  }
  return options;
}

function readFlag(key: string, value: string): boolean {
  if (value !== "true" && value !== "false") throw reject(`${key} takes true or false`);
  return value === "true";
}

function readSeconds(key: string, value: string): number {
  const seconds = /^\d{1,6}$/.test(value) ? Number(value) : 0;
  if (seconds < 1 || seconds > MAX_TTL_SECONDS)
    throw reject(`${key} takes a number of seconds, 1 to ${MAX_TTL_SECONDS}`);
  return seconds;
}

const reject = (what: string) => invalidRequest(HEADER, `${HEADER} ${what}.`);
