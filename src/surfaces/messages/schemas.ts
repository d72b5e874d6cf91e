import { z } from "zod";
import {
  https,
  isHttps,
  MAX_MEDIA,
  MAX_PARTS,
  MAX_TOOLS,
  notBase64,
  text,
  toolCallId,
} from "../../gateway/message-schemas.ts";
import { callersSchema, tokenCount, tokenLimit } from "../../gateway/schemas.ts";

/** Turns of one request: an agent makes two for each of its steps. */
const MAX_TURNS = 4_000;
/** A block of thinking of another provider holds up to 1 MiB of its reasoning, in base64. */
const MAX_SIGNATURE_CHARACTERS = 3 << 20;
/** Anthropic's own bound, above that of OpenAI's API. */
const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/, "must be 1 to 128 letters, digits, _ or -");
const MAX_STOPS = 16;
const MAX_USER = 512;

const base64 = z
  .string()
  .min(1)
  .refine((data) => !notBase64.test(data), "must be base64");
const linked = z.object({ type: z.literal("url"), url: z.string().refine(isHttps, `must be ${https}`) });
const picture = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("base64"),
    media_type: z.enum(["image/png", "image/jpeg", "image/gif", "image/webp"]),
    data: base64,
  }),
  linked,
]);

const textBlock = z.object({ type: z.literal("text"), text });
const imageBlock = z.object({ type: z.literal("image"), source: picture });
const documentBlock = z.object({
  type: z.literal("document"),
  source: z.discriminatedUnion("type", [
    z.object({ type: z.literal("base64"), media_type: z.literal("application/pdf"), data: base64 }),
    z.object({ type: z.literal("text"), media_type: z.literal("text/plain"), data: text }),
    z.object({
      type: z.literal("content"),
      content: z.union([text, z.array(z.discriminatedUnion("type", [textBlock, imageBlock])).max(MAX_PARTS)]),
    }),
    linked,
  ]),
  title: z.string().max(500).nullish(),
  context: text.nullish(),
});
const searchResultBlock = z.object({
  type: z.literal("search_result"),
  source: text,
  title: text,
  content: z.array(textBlock).max(MAX_PARTS),
});
const readBlocks = [textBlock, imageBlock, documentBlock, searchResultBlock] as const;

/** What only Anthropic's models and tools can read. A block of a `known` type that does not fit is none of it. */
function foreignBlock(known: readonly { shape: { type: z.ZodLiteral<string> } }[]) {
  const types: ReadonlySet<string> = new Set(known.map(({ shape }) => shape.type.value));
  return z
    .looseObject({ type: z.string().max(100) })
    .refine(({ type }) => !types.has(type), "is not a valid block of this type")
    .transform(() => ({ type: "foreign" as const }));
}
const resultBlock = z.union([z.discriminatedUnion("type", readBlocks), foreignBlock(readBlocks)]);
const toolResultBlock = z.object({
  type: z.literal("tool_result"),
  tool_use_id: toolCallId,
  content: z.union([text, z.array(resultBlock).max(MAX_PARTS)]).nullish(),
  is_error: z.boolean().nullish(),
});
const thinkingBlock = z.object({
  type: z.literal("thinking"),
  thinking: text,
  signature: z.string().max(MAX_SIGNATURE_CHARACTERS),
});
const redactedBlock = z.object({
  type: z.literal("redacted_thinking"),
  data: z.string().max(MAX_SIGNATURE_CHARACTERS),
});
const toolUseBlock = z.object({
  type: z.literal("tool_use"),
  id: toolCallId,
  name: toolName,
  input: z.record(z.string(), z.unknown()),
});
/** What stands for all that was said before it. */
const compactionBlock = z.object({ type: z.literal("compaction"), content: text.nullish() });
const userBlocks = [...readBlocks, toolResultBlock] as const;
const assistantBlocks = [textBlock, thinkingBlock, redactedBlock, toolUseBlock, compactionBlock] as const;
/** Every block that is read. */
export const knownBlocks = [...userBlocks, ...assistantBlocks] as const;

/** The blocks of a turn, or its text. Those of other sides of the conversation are wrong in it, and not foreign. */
const contentOf = <const B extends readonly [typeof textBlock, ...(typeof knownBlocks)[number][]]>(blocks: B) =>
  z.union([text, z.array(z.union([z.discriminatedUnion("type", blocks), foreignBlock(knownBlocks)])).max(MAX_PARTS)]);
export const turnSchema = z.discriminatedUnion("role", [
  z.object({ role: z.literal("system"), content: contentOf([textBlock]) }),
  z.object({ role: z.literal("user"), content: contentOf(userBlocks) }),
  z.object({ role: z.literal("assistant"), content: contentOf(assistantBlocks) }),
]);
export type Turn = z.output<typeof turnSchema>;
export type ReadBlock = z.output<(typeof readBlocks)[number]>;
export type ResultBlock = z.output<typeof resultBlock>;
export type UserBlock = Exclude<Extract<Turn, { role: "user" }>["content"], string>[number];
export type AssistantBlock = Exclude<Extract<Turn, { role: "assistant" }>["content"], string>[number];

export const ownToolSchema = z.object({
  type: z.literal("custom").nullish(),
  name: toolName,
  description: z.string().max(20_000).nullish(),
  input_schema: callersSchema,
});
/** A tool of the caller's own, or one of Anthropic's, which carries a type and is not run here. */
const toolSchema = z.union([
  ownToolSchema,
  z
    .looseObject({
      type: z
        .string()
        .max(100)
        .refine((type) => type !== "custom", "needs an input_schema"),
    })
    .transform(({ type }) => ({ type })),
]);

const isSingle = z.boolean().nullish();
const outputFormat = z.object({ type: z.literal("json_schema"), schema: callersSchema }).nullish();
const countedFields = {
  model: z.string().min(1).max(200).describe("A model, `meta-llm` or `auto`"),
  messages: z.array(turnSchema).min(1).max(MAX_TURNS).superRefine(boundMedia),
  system: z.union([text, z.array(textBlock).max(MAX_PARTS)]).nullish(),
  tools: z.array(toolSchema).max(MAX_TOOLS).nullish(),
  tool_choice: z
    .discriminatedUnion("type", [
      z.object({ type: z.enum(["auto", "any"]), disable_parallel_tool_use: isSingle }),
      z.object({ type: z.literal("none") }),
      z.object({ type: z.literal("tool"), name: toolName, disable_parallel_tool_use: isSingle }),
    ])
    .nullish(),
  thinking: z
    .discriminatedUnion("type", [
      z.object({ type: z.literal("enabled"), budget_tokens: tokenLimit }),
      z.object({ type: z.enum(["adaptive", "between_tools", "disabled"]) }),
    ])
    .nullish(),
  output_config: z
    .object({
      effort: z.enum(["low", "medium", "high", "xhigh", "max"]).nullish(),
      format: outputFormat,
    })
    .nullish(),
  output_format: outputFormat.describe("The earlier name of `output_config.format`"),
  context_management: z
    .looseObject({ edits: z.array(z.looseObject({ type: z.string().max(100) })).nullish() })
    .nullish()
    .describe("`clear_thinking_20251015` alone; other edits need Anthropic's models"),
};

/** The body of `POST /v1/messages/count_tokens`: https://platform.claude.com/docs/en/api/messages/count_tokens. */
export const countTokensBodySchema = z.object(countedFields);
export type CountTokensBody = z.output<typeof countTokensBodySchema>;

/** The body of `POST /v1/messages`: https://platform.claude.com/docs/en/api/messages/create. */
export const messagesBodySchema = z.object({
  ...countedFields,
  max_tokens: tokenLimit,
  stream: z.boolean().nullish(),
  stop_sequences: z.array(z.string().min(1).max(500)).max(MAX_STOPS).nullish(),
  temperature: z.number().min(0).max(1).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  metadata: z.object({ user_id: z.string().max(MAX_USER).nullish() }).nullish(),
  service_tier: z.enum(["auto", "standard_only"]).nullish(),
});
export type MessagesBody = z.output<typeof messagesBodySchema>;

export const tokensCountSchema = z.object({ input_tokens: tokenCount });

const stopReason = z.enum(["end_turn", "max_tokens", "tool_use", "refusal"]);
const messageUsage = z.object({
  input_tokens: tokenCount.describe("Without those of the provider's cache"),
  cache_creation_input_tokens: tokenCount,
  cache_read_input_tokens: tokenCount,
  output_tokens: tokenCount,
});
const answerBlock = z.discriminatedUnion("type", [
  textBlock,
  thinkingBlock.extend({ thinking: z.string() }),
  redactedBlock,
  toolUseBlock,
]);
export type AnswerBlock = z.input<typeof answerBlock>;

/** What is reported of a call besides what Anthropic reports. */
const account = z.object({ logId: z.string(), costUsd: z.number().min(0), cached: z.boolean() });

/** The JSON answer of `POST /v1/messages`. */
export const messageSchema = z.object({
  id: z.string(),
  type: z.literal("message"),
  role: z.literal("assistant"),
  model: z.string(),
  content: z.array(answerBlock),
  stop_reason: stopReason.nullable(),
  stop_sequence: z.null(),
  usage: messageUsage,
  ...account.partial().shape,
});
export type ApiMessage = z.input<typeof messageSchema>;

const delta = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text_delta"), text: z.string() }),
  z.object({ type: z.literal("thinking_delta"), thinking: z.string() }),
  z.object({ type: z.literal("signature_delta"), signature: z.string() }),
  z.object({ type: z.literal("input_json_delta"), partial_json: z.string() }),
]);
export type BlockDelta = z.input<typeof delta>;

export const apiErrorSchema = z.object({
  type: z.literal("error"),
  error: z.object({
    type: z.string(),
    message: z.string(),
    details: z.unknown().optional().describe("`error_code` is what Anthropic's clients decide by"),
  }),
  request_id: z.string(),
});

/** The data of an event of the stream: https://platform.claude.com/docs/en/build-with-claude/streaming. */
export const messageEventSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("message_start"), message: messageSchema }),
  z.object({ type: z.literal("content_block_start"), index: tokenCount, content_block: answerBlock }),
  z.object({ type: z.literal("content_block_delta"), index: tokenCount, delta }),
  z.object({ type: z.literal("content_block_stop"), index: tokenCount }),
  z.object({
    type: z.literal("message_delta"),
    delta: z.object({ stop_reason: stopReason, stop_sequence: z.null() }),
    usage: messageUsage,
    ...account.shape,
  }),
  z.object({ type: z.literal("message_stop") }),
  z.object({ type: z.literal("ping") }),
  apiErrorSchema,
]);
export type MessageEvent = z.input<typeof messageEventSchema>;

type Media = { type: string; content?: unknown; source?: unknown };

/** Bounds the pictures and files of a request, those in results of tools and in documents too. */
function boundMedia(turns: readonly { content: string | readonly Media[] }[], context: z.core.$RefinementCtx): void {
  let media = 0;
  const count = (blocks: unknown): void => {
    if (!Array.isArray(blocks)) return;
    for (const { type, content, source } of blocks as Media[]) {
      if (type === "image" || type === "document") media += 1;
      if (content !== undefined) count(content);
      if (type === "document") count((source as Media).content); // the schema has checked it
    }
  };
  for (const [place, { content }] of turns.entries()) {
    count(content);
    if (media <= MAX_MEDIA) continue;
    const message = `has one picture or file too many: a request has ${MAX_MEDIA} at most`;
    context.addIssue({ code: "custom", path: [place, "content"], message });
    return;
  }
}
