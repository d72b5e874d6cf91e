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
  toolName,
} from "../message-schemas.ts";
import { callersSchema, tokenCount, tokenLimit } from "../schemas.ts";

/** Turns of one request: an agent makes two for each of its steps. */
const MAX_TURNS = 4_000;
/** A block of thinking of another provider holds up to 1 MiB of its reasoning, in base64. */
const MAX_SIGNATURE_CHARACTERS = 3 << 20;
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
const toolResultBlock = z.object({
  type: z.literal("tool_result"),
  tool_use_id: toolCallId,
  content: z.union([text, z.array(z.discriminatedUnion("type", readBlocks)).max(MAX_PARTS)]).nullish(),
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
const assistantBlocks = [textBlock, thinkingBlock, redactedBlock, toolUseBlock] as const;
const assistantTypes: ReadonlySet<string> = new Set(assistantBlocks.map(({ shape }) => shape.type.value));
/** What Anthropic's own tools left in a conversation. No other model can read it. */
const foreignBlock = z
  .looseObject({ type: z.string().max(100) })
  .refine(({ type }) => !assistantTypes.has(type), "is not a valid block of this type")
  .transform(() => ({ type: "foreign" as const }));

const turnSchema = z.discriminatedUnion("role", [
  z.object({ role: z.literal("system"), content: z.union([text, z.array(textBlock).max(MAX_PARTS)]) }),
  z.object({
    role: z.literal("user"),
    content: z.union([text, z.array(z.discriminatedUnion("type", [...readBlocks, toolResultBlock])).max(MAX_PARTS)]),
  }),
  z.object({
    role: z.literal("assistant"),
    content: z.union([
      text,
      z.array(z.union([z.discriminatedUnion("type", assistantBlocks), foreignBlock])).max(MAX_PARTS),
    ]),
  }),
]);
export type Turn = z.output<typeof turnSchema>;
export type ReadBlock = z.output<(typeof readBlocks)[number]>;
export type UserBlock = Exclude<Extract<Turn, { role: "user" }>["content"], string>[number];
export type AssistantBlock = Exclude<Extract<Turn, { role: "assistant" }>["content"], string>[number];

/** A tool of the caller's own, or one of Anthropic's, which carries a type and is not run here. */
const toolSchema = z.union([
  z.object({
    type: z.literal("custom").nullish(),
    name: toolName,
    description: z.string().max(20_000).nullish(),
    input_schema: callersSchema,
  }),
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
      format: z.object({ type: z.literal("json_schema"), schema: callersSchema }).nullish(),
    })
    .nullish(),
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
  metadata: z.object({ user_id: z.string().min(1).max(MAX_USER).nullish() }).nullish(),
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
  error: z.object({ type: z.string(), message: z.string() }),
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
