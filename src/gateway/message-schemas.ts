import { z } from "zod";
import { isSmallJson, withFewFields } from "../lib/bounded-json.ts";

const MAX_MESSAGES = 200;
const MAX_MESSAGE_CHARACTERS = 400_000;
/** Tools of one request. Their bytes are bounded by those of its body. */
export const MAX_TOOLS = 1_024;
/** Calls in one message; OpenAI's API takes as many. */
const MAX_CALLS = 128;
/** Parts of one message. */
export const MAX_PARTS = 1_000;
/** Pictures and files of one request; Anthropic's smaller models take as many. */
export const MAX_MEDIA = 100;
const MAX_URL_CHARACTERS = 8_192;
/** Items of reasoning in one message. */
const MAX_REASONING_ITEMS = 200;

export const text = z.string().max(MAX_MESSAGE_CHARACTERS);
export const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, _ or -");
export const toolCallId = z.string().min(1).max(200);

/** A call of a tool, the same in requests and answers, so that an answer's calls can be sent back as they are. */
export const toolCallSchema = z.object({
  id: toolCallId,
  type: z.literal("function"),
  function: z.object({ name: toolName, arguments: z.string().max(MAX_MESSAGE_CHARACTERS) }),
});
export type WireToolCall = z.output<typeof toolCallSchema>;
export const toolCallsSchema = z.array(toolCallSchema).min(1).max(MAX_CALLS);

const imageData = /^data:image\/(?:png|jpeg|gif|webp);base64,/;
const pdfData = /^data:application\/pdf;base64,/;
const LONGEST_HEAD = 40;
export const notBase64 = /[^A-Za-z0-9+/=]/;

/** Megabytes are looked through once, without a copy and without backtracking. */
function isData(url: string, head: RegExp): boolean {
  const length = head.exec(url.slice(0, LONGEST_HEAD))?.[0].length;
  return length !== undefined && url.length > length && !notBase64.test(url.slice(length));
}

export function isHttps(url: string): boolean {
  return url.length <= MAX_URL_CHARACTERS && /^https:\/\//i.test(url) && URL.canParse(url);
}

export const https = `an https URL of at most ${MAX_URL_CHARACTERS} characters`;
export const imageUrl = z
  .string()
  .refine(
    (url) => isData(url, imageData) || isHttps(url),
    `must be ${https}, or a data: URL with base64 of a PNG, JPEG, GIF or WebP`,
  );
export const pdfUrl = z
  .string()
  .refine((url) => isData(url, pdfData) || isHttps(url), `must be a data: URL with base64 of a PDF, or ${https}`);
export const httpsUrl = z.string().refine(isHttps, `must be ${https}`);

const textPart = z.object({ type: z.literal("text"), text });

/** OpenAI's content parts: https://platform.openai.com/docs/api-reference/chat/create. */
export const contentPartSchema = z.discriminatedUnion("type", [
  textPart,
  z.object({
    type: z.literal("image_url"),
    image_url: z.object({ url: imageUrl, detail: z.enum(["auto", "low", "high", "original"]).nullish() }),
  }),
  z.object({
    type: z.literal("file"),
    file: z
      .object({
        filename: z.string().min(1).max(255).nullish(),
        file_data: pdfUrl.nullish(),
        file_url: httpsUrl.nullish(),
      })
      .refine(
        ({ file_data: data, file_url: url }) =>
          ((data ?? undefined) === undefined) !== ((url ?? undefined) === undefined),
        "must have either file_data or file_url",
      ),
  }),
]);
export type WirePart = z.output<typeof contentPartSchema>;

/** Text, or a list of text parts. */
export const textContent = z.union([text, z.array(textPart).max(MAX_PARTS)]);
const content = z.union([text, z.array(contentPartSchema).max(MAX_PARTS)]);

/** How Anthropic (the first two) and OpenAI name an item of reasoning. Nothing else may go to a provider unread. */
const reasoningTypes: readonly unknown[] = ["thinking", "redacted_thinking", "reasoning"];
const reasoningBounds = { values: 1_000, levels: 8, characters: 1 << 20 };

/** Reasoning in an answer, which goes back in the assistant's message as it is. */
export const reasoningDetailSchema = z.object({
  type: z.literal("reasoning"),
  provider: z.string().min(1).max(200).describe("Who made it; it goes to no other provider"),
  index: z.number().int().min(0).max(1_000).describe("Its place among the parts of the turn"),
  item: withFewFields(50, z.record(z.string(), z.unknown()))
    .refine((item) => reasoningTypes.includes(item.type), "must be an item of reasoning as an answer has it")
    .refine((item) => isSmallJson(item, reasoningBounds), "is larger than 1000 values, 8 levels or 1 MiB")
    .describe("As the provider gave it"),
});
export const reasoningDetailsSchema = z.array(reasoningDetailSchema).max(MAX_REASONING_ITEMS);
export type ReasoningDetail = z.output<typeof reasoningDetailsSchema>[number];

export const userMessage = z.object({ role: z.literal("user"), content });
export const assistantMessage = z.object({
  role: z.literal("assistant"),
  content: textContent.nullish().describe("May be missing or null when there are tool calls"),
  tool_calls: toolCallsSchema.nullish(),
  reasoning_details: reasoningDetailsSchema.nullish().describe("As the answer had them"),
});
export const toolMessage = z.object({ role: z.literal("tool"), content, tool_call_id: toolCallId });

type WireContent = string | readonly { type: string }[] | null | undefined;
/** A message, or the result of a tool as an item of its own. */
type WireMessage = { type?: string | undefined; role?: string; content?: WireContent; output?: WireContent };

/** The messages of a request, with a bound on its pictures and files. */
export function conversationOf<S extends z.ZodType<WireMessage>>(message: S, maxMessages = MAX_MESSAGES) {
  return z.array(message).min(1).max(maxMessages).superRefine(boundMedia);
}

const mediaTypes: ReadonlySet<string> = new Set(["image_url", "file", "input_image", "input_file"]);

/** How many pictures and files the messages have. */
export const countMedia = (messages: readonly WireMessage[]): number =>
  messages.reduce((sum, message) => sum + mediaOf(message), 0);

function mediaOf({ content, output }: WireMessage): number {
  const parts = content ?? output;
  return Array.isArray(parts) ? parts.filter(({ type }) => mediaTypes.has(type)).length : 0;
}

function boundMedia(messages: readonly WireMessage[], context: z.core.$RefinementCtx): void {
  let media = 0;
  for (const [place, one] of messages.entries()) {
    media += mediaOf(one);
    if (media <= MAX_MEDIA) continue;
    const message = `has one picture or file too many: a request has ${MAX_MEDIA} at most`;
    context.addIssue({ code: "custom", path: [place, one.content ? "content" : "output"], message });
    return;
  }
}
