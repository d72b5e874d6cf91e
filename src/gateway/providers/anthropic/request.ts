import { defined } from "../../../lib/defined.ts";
import type { Message } from "../../messages.ts";
import type { CompletionRequest, ResponseFormat, ServiceTier, ToolDefinition } from "../provider.ts";
import { type Block, toBlocks } from "./blocks.ts";

/** The API demands a limit, and thinking counts towards it. Every current model can write four times as much. */
export const DEFAULT_MAX_TOKENS = 16_384;

type Turn = { role: "user" | "assistant"; content: Block[] };

/**
 * The parameters of `POST /v1/messages`: system messages become `system`, tool results become blocks of the user's turn,
 * and messages of one side that follow each other become one turn, so that the results of parallel calls stay together. With
 * `isRepeated` the ends of instructions and conversation are marked for the prompt cache.
 */
export function toMessagesParams(request: CompletionRequest, isRepeated = false): Record<string, unknown> {
  const system = request.messages.flatMap((message) => (message.role === "system" ? [message.content] : []));
  const turns = toTurns(request.messages);
  // A conversation needs a turn: where there are only instructions, the last one becomes the question.
  if (turns.length === 0) turns.push({ role: "user", content: [{ type: "text", text: system.pop() ?? "" }] });
  const text = system.length === 0 ? undefined : system.join("\n\n");
  const tools = request.tools?.map(toWireTool);
  if (isRepeated) {
    markTurns(turns);
    if (text === undefined) markEnd(tools ?? []); // else they are kept with the instructions, which follow them
  }
  const maxTokens = request.maxTokens ?? DEFAULT_MAX_TOKENS;
  const { thinking, effort } = toThinking(request, maxTokens);
  const format = request.responseFormat && toWireFormat(request.responseFormat);
  const userId = request.safetyIdentifier ?? request.user;
  return defined({
    model: request.model,
    max_tokens: maxTokens,
    system: isRepeated && text !== undefined ? [{ type: "text", text, ...BREAKPOINT }] : text,
    messages: turns.map(toWireTurn),
    temperature: request.temperature,
    top_p: request.topP,
    stop_sequences: request.stop,
    tools,
    tool_choice: toWireToolChoice(request),
    thinking,
    output_config: effort === undefined && format === undefined ? undefined : defined({ effort, format }),
    metadata: userId === undefined ? undefined : { user_id: userId },
    service_tier: request.serviceTier && wireTiers[request.serviceTier],
  });
}

function toTurns(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    if (message.role === "system") continue;
    const role = message.role === "assistant" ? "assistant" : "user";
    const blocks = toBlocks(message);
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else if (blocks.length > 0) turns.push({ role, content: blocks });
  }
  return turns;
}

/** A turn of one text is sent as that text: shorter, and what the documentation shows first. */
function toWireTurn({ role, content }: Turn): unknown {
  const [only] = content;
  const isText = content.length === 1 && only?.type === "text" && only.cache_control === undefined;
  return { role, content: isText ? only.text : content };
}

function toWireTool({ name, description, parameters }: ToolDefinition): object {
  return defined({ name, description, input_schema: { type: "object", ...parameters } });
}

/** `auto` is what a request with tools has without a choice. */
function toWireToolChoice({ tools, toolChoice, parallelToolCalls }: CompletionRequest): unknown {
  const isSingle = parallelToolCalls === false && tools !== undefined && toolChoice !== "none";
  if (toolChoice === undefined && !isSingle) return undefined;
  const single = isSingle ? { disable_parallel_tool_use: true } : {};
  if (typeof toolChoice === "object") return { type: "tool", name: toolChoice.name, ...single };
  return { type: toolChoice === "required" ? "any" : (toolChoice ?? "auto"), ...single };
}

/** OpenAI's format with a schema as Anthropic's ("Structured outputs"); it has no other. */
function toWireFormat(format: ResponseFormat): unknown {
  return format.type === "json_schema" ? { type: format.type, schema: format.json_schema.schema } : undefined;
}

/** OpenAI's tiers in Anthropic's words ("Service tiers"). */
const wireTiers: Partial<Record<ServiceTier, string>> = { auto: "auto", default: "standard_only" };

/** Models that think by a budget of tokens ("Extended thinking" of Anthropic's documentation); later ones by `effort`. */
const budgeted = /^claude-(opus|sonnet|haiku)-4-5\b/;
/** The part of an answer's limit that such a model may think, and the least that the API takes, in tokens. */
const shares = { minimal: 0.1, low: 0.2, medium: 0.5, high: 0.8, xhigh: 0.95, max: 0.95 };
const LEAST_BUDGET = 1_024;

/**
 * What a request's effort is in Anthropic's terms ("Effort" and "Adaptive thinking" of its documentation); nothing where
 * there is none, so that the model thinks as it does by default. Thinking is refused beside a demanded tool call; `effort`
 * alone is not.
 */
function toThinking(
  { model, effort, toolChoice }: CompletionRequest,
  maxTokens: number,
): { thinking?: Record<string, unknown>; effort?: string } {
  if (effort === undefined) return {};
  // Sonnet 5.5 has no other word for it; it keeps its notes between tool calls.
  if (effort === "none") return { thinking: { type: model === "claude-sonnet-5-5" ? "between_tools" : "disabled" } };
  const isDemanded = typeof toolChoice === "object" || toolChoice === "required";
  if (!budgeted.test(model)) {
    const level = { effort: effort === "minimal" ? "low" : effort };
    return isDemanded ? level : { thinking: { type: "adaptive" }, ...level };
  }
  const budget = Math.floor(maxTokens * shares[effort]);
  return isDemanded || budget < LEAST_BUDGET ? {} : { thinking: { type: "enabled", budget_tokens: budget } };
}

/** Marks the end of what the API is to keep for five minutes ("Prompt caching" of Anthropic's documentation). */
const BREAKPOINT = { cache_control: { type: "ephemeral" as const } };

/**
 * Whether the start of a request is likely to come again soon: that of a conversation, of a call with tools, whose
 * results come back after all that it has, or of one whose `promptCacheKey` says so. Writing to the cache costs a quarter more than not writing, and reading a tenth at most, so one repeat pays for it.
 * A prompt below the model's minimum (512 to 4,096 tokens) is neither kept nor charged more, so its length needs no look.
 */
export function willRepeat({ messages, promptCacheKey, tools, toolChoice }: CompletionRequest): boolean {
  const mayCall = tools !== undefined && toolChoice !== "none";
  return promptCacheKey !== undefined || mayCall || messages.some(({ role }) => role === "assistant");
}

/**
 * Marks the ends of the user's last two turns. The last one is what the next call reads; the one before is what the last call
 * wrote, and without a mark the API looks for it only 20 blocks back, which parallel tool calls exceed.
 */
function markTurns(turns: readonly { role: "user" | "assistant"; content: object[] }[]): void {
  for (const { content } of turns.filter(({ role }) => role === "user").slice(-2)) markEnd(content);
}

function markEnd(blocks: readonly object[]): void {
  const last = blocks.at(-1);
  if (last !== undefined) Object.assign(last, BREAKPOINT);
}
