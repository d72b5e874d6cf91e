import type { ChatRequest } from "../../gateway/chat/request.ts";
import {
  type AssistantPart,
  type Content,
  type ContentPart,
  type Message,
  toAssistantMessage,
  toContent,
} from "../../gateway/messages.ts";
import type { Effort } from "../../gateway/providers/model.ts";
import type { ToolDefinition } from "../../gateway/providers/provider.ts";
import { messagesProvider } from "../../gateway/providers/registry.ts";
import { defined } from "../../lib/defined.ts";
import { invalidRequest } from "../../lib/errors.ts";
import { openReasoning } from "../responses/sealed-reasoning.ts";
import type {
  AssistantBlock,
  CountTokensBody,
  MessagesBody,
  ReadBlock,
  ResultBlock,
  Turn,
  UserBlock,
} from "./schemas.ts";
import { visibleTurns } from "./server-state.ts";

/** A chat, and the paths of what of its body only Anthropic can read. */
type Translated = { request: ChatRequest; ignored: string[] };

/**
 * The chat that a body of the Messages API asks for.
 * @throws AppError `invalid_request` for a choice of a tool that is not given, and for thinking that was changed.
 */
export function toChat(body: CountTokensBody & Partial<MessagesBody>): Translated {
  const ignored: string[] = [];
  const tools = body.tools?.flatMap((tool, place): ToolDefinition[] => {
    if ("input_schema" in tool)
      return [defined({ name: tool.name, description: tool.description ?? undefined, parameters: tool.input_schema })];
    ignored.push(`tools[${place}]`);
    return [];
  });
  const format = body.output_config?.format ?? body.output_format ?? undefined;
  const stop = body.stop_sequences ?? [];
  const request = defined({
    model: body.model,
    systemPrompt: body.system ? textsOf(body.system) : undefined,
    messages: visibleTurns(body).flatMap(({ turn, place }) => toMessages(turn, `messages[${place}].content`, ignored)),
    tools: tools?.length ? tools : undefined,
    ...toToolChoice(body.tool_choice ?? undefined, tools ?? []),
    maxTokens: body.max_tokens,
    stop: stop.length > 0 ? stop : undefined,
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined,
    effort: toEffort(body),
    responseFormat: format && {
      type: "json_schema" as const,
      json_schema: { name: "answer", schema: format.schema, strict: true },
    },
    user: body.metadata?.user_id || undefined,
    serviceTier: body.service_tier ? serviceTiers[body.service_tier] : undefined,
  });
  return { request, ignored };
}

const serviceTiers = { auto: "auto", standard_only: "default" } as const;

const textsOf = (content: string | readonly { text: string }[]) =>
  typeof content === "string" ? content : content.map(({ text }) => text).join("\n");

function toMessages({ role, content }: Turn, path: string, ignored: string[]): Message[] {
  if (role === "assistant") return [toAssistant(content, path, ignored)];
  if (role === "user") return toUserMessages(content, path, ignored);
  return [{ role, content: textsOf(typeof content === "string" ? content : withoutForeign(content, path, ignored)) }];
}

/** The blocks of a turn but for those that only Anthropic can read. */
function withoutForeign<B extends { type: string }>(blocks: readonly B[], path: string, ignored: string[]) {
  return blocks.filter((block, at): block is Exclude<B, { type: "foreign" }> => {
    const isForeign = block.type === "foreign";
    if (isForeign) ignored.push(`${path}[${at}]`);
    return !isForeign;
  });
}

/** The results of tools in a turn, each a message, and then what else it has. */
function toUserMessages(content: string | readonly UserBlock[], path: string, ignored: string[]): Message[] {
  if (typeof content === "string") return [{ role: "user", content }];
  const messages: Message[] = [];
  const said: ReadBlock[] = [];
  const toResult = (blocks: readonly ResultBlock[], at: number) =>
    readContent(withoutForeign(blocks, `${path}[${at}].content`, ignored));
  for (const [at, block] of content.entries()) {
    if (block.type === "foreign") ignored.push(`${path}[${at}]`);
    else if (block.type !== "tool_result") said.push(block);
    else {
      const result = typeof block.content === "string" ? block.content : toResult(block.content ?? [], at);
      messages.push({
        role: "tool",
        toolCallId: block.tool_use_id,
        content: block.is_error ? asFailure(result) : result,
      });
    }
  }
  if (said.length > 0) messages.push({ role: "user", content: readContent(said) });
  return messages;
}

/** The one form has no mark for a tool that failed, so its result says it. */
function asFailure(result: Content): Content {
  const label = "The tool failed:";
  return typeof result === "string" ? `${label} ${result}` : [{ type: "text", text: label }, ...result];
}

const readContent = (blocks: readonly ReadBlock[]): Content => toContent(blocks.flatMap(toParts));

function toParts(block: ReadBlock): ContentPart[] {
  if (block.type === "text") return [{ type: "text", text: block.text }];
  if (block.type === "image") return [{ type: "image", url: toUrl(block.source) }];
  if (block.type === "search_result")
    return [{ type: "text", text: [block.title, block.source, textsOf(block.content)].join("\n") }];
  const { source, title, context } = block;
  const head = [title, context].filter((line) => typeof line === "string").join("\n");
  const about: ContentPart[] = head === "" ? [] : [{ type: "text", text: head }];
  if (source.type === "text") return [...about, { type: "text", text: source.data }];
  if (source.type === "content") {
    const { content } = source;
    return [
      ...about,
      ...(typeof content === "string" ? [{ type: "text" as const, text: content }] : content.flatMap(toParts)),
    ];
  }
  const file: ContentPart = defined({
    type: "file" as const,
    url: toUrl(source),
    name: title?.slice(0, 255) || undefined,
  });
  return context ? [{ type: "text", text: context }, file] : [file];
}

const toUrl = (source: { type: "url"; url: string } | { type: "base64"; media_type: string; data: string }) =>
  source.type === "url" ? source.url : `data:${source.media_type};base64,${source.data}`;

/** A turn of the model, with the reasoning in its places. */
function toAssistant(content: string | readonly AssistantBlock[], path: string, ignored: string[]): Message {
  if (typeof content === "string") return { role: "assistant", content };
  const parts: AssistantPart[] = [];
  for (const [at, block] of content.entries()) {
    const param = `${path}[${at}]`;
    if (block.type === "foreign") ignored.push(param);
    else if (block.type === "text") parts.push(block);
    else if (block.type === "compaction") parts.push(...toSummary(block.content ?? ""));
    else if (block.type === "tool_use") parts.push(toToolCall(block));
    else if (block.type === "redacted_thinking") parts.push(toOwnReasoning(block));
    // Without a signature there is only the text, which no provider takes back.
    else if (block.signature !== "")
      parts.push(openReasoning(block.signature, `${param}.signature`) ?? toOwnReasoning(block));
  }
  return toAssistantMessage(parts);
}

const toSummary = (summary: string): AssistantPart[] => (summary === "" ? [] : [{ type: "text", text: summary }]);

const toOwnReasoning = (item: Record<string, unknown>) => ({
  type: "reasoning" as const,
  provider: messagesProvider,
  item,
});

const toToolCall = ({ id, name, input }: Extract<AssistantBlock, { type: "tool_use" }>) => ({
  type: "tool-call" as const,
  id,
  name,
  arguments: JSON.stringify(input),
});

function toToolChoice(choice: CountTokensBody["tool_choice"], tools: readonly ToolDefinition[]) {
  if (!choice || tools.length === 0) return {};
  const single =
    "disable_parallel_tool_use" in choice && choice.disable_parallel_tool_use ? { parallelToolCalls: false } : {};
  if (choice.type !== "tool") return { toolChoice: choices[choice.type], ...single };
  if (!tools.some(({ name }) => name === choice.name))
    throw invalidRequest("tool_choice", "tool_choice asks for a tool that tools does not hold.");
  return { toolChoice: { name: choice.name }, ...single };
}

const choices = { auto: "auto", any: "required", none: "none" } as const;

/** The part of an answer's limit that may be thought, up to which an effort is meant. */
const shares = [
  [0.2, "low"],
  [0.5, "medium"],
  [0.8, "high"],
] as const;

/** Anthropic's ways to say how much to think, as one effort; undefined leaves it to the model. */
function toEffort({ thinking, output_config: output, max_tokens: maxTokens }: CountTokensBody & Partial<MessagesBody>) {
  const effort: Effort | undefined = output?.effort ?? undefined;
  if (thinking?.type === "disabled") return "none" as const;
  if (effort !== undefined || thinking?.type !== "enabled" || maxTokens === undefined) return effort;
  const share = thinking.budget_tokens / maxTokens;
  return shares.find(([most]) => share <= most)?.[1] ?? ("xhigh" as const);
}
