import { z } from "zod";
import { providerFinishReason, tokenCount } from "../../gateway/schemas.ts";

const status = z.enum(["in_progress", "completed", "incomplete"]);
const noMarks = z.array(z.never()).describe("Always empty");

/** Where in its document a passage is. */
const placeFields = {
  page: z.int().optional(),
  heading: z.string().optional().describe("The headings above, joined by ` > `"),
};

export const annotationSchema = z
  .object({
    type: z.literal("file_citation"),
    file_id: z.string(),
    filename: z.string(),
    index: tokenCount.describe("The place in the text that rests on it, in UTF-16 units"),
    document_id: z.string(),
    chunk_id: z.string().describe("The passage: a chunk of that document"),
    ...placeFields,
    quote: z.string().optional().describe("The words of the passage that are nearest to what rests on it"),
  })
  .describe("A passage that `file_search`, or the agent in the place of a model, has found");
export type Annotation = z.input<typeof annotationSchema>;

const outputText = z.object({
  type: z.literal("output_text"),
  text: z.string(),
  annotations: z.array(annotationSchema),
  logprobs: noMarks,
});
const summaryText = z.object({ type: z.literal("summary_text"), text: z.string() });

/** A passage that a search found. */
export const searchResultSchema = z.object({
  file_id: z.string(),
  filename: z.string(),
  score: z.number(),
  text: z.string(),
  attributes: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  document_id: z.string(),
  chunk_id: z.string(),
  ...placeFields,
  quote: z.string().optional().describe("The words of the passage that are nearest to the query"),
});

export const outputItemSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("reasoning"),
    id: z.string(),
    summary: z.array(summaryText),
    encrypted_content: z.string().optional().describe("Send the item back as it is"),
  }),
  z.object({
    type: z.literal("message"),
    id: z.string(),
    status,
    role: z.literal("assistant"),
    content: z.array(outputText),
  }),
  z.object({
    type: z.literal("function_call"),
    id: z.string(),
    status,
    call_id: z.string(),
    name: z.string(),
    namespace: z.string().optional(),
    arguments: z.string(),
  }),
  z.object({
    type: z.literal("custom_tool_call"),
    id: z.string(),
    status,
    call_id: z.string(),
    name: z.string(),
    namespace: z.string().optional(),
    input: z.string(),
  }),
  z.object({
    type: z.literal("file_search_call"),
    id: z.string(),
    status: z.enum(["in_progress", "searching", "completed", "incomplete", "failed"]),
    queries: z.array(z.string()),
    results: z.array(searchResultSchema).nullable().describe('With `include: ["file_search_call.results"]`'),
  }),
  z
    .object({
      type: z.literal("mcp_call"),
      id: z.string(),
      status: z.enum(["in_progress", "completed", "failed"]),
      server_label: z.string().describe("The agent"),
      name: z.string(),
      arguments: z.string(),
      output: z.string().nullable(),
      error: z.string().nullable(),
      approval_request_id: z.string().nullable(),
    })
    .describe("A tool call that an agent made itself, where `model` names one"),
  z
    .object({
      type: z.literal("mcp_approval_request"),
      id: z.string(),
      server_label: z.string().describe("The agent"),
      name: z.string(),
      arguments: z.string(),
    })
    .describe(
      "A tool call of an agent that a person has to approve: by an item `mcp_approval_response`, or by the approval of this id",
    ),
]);
export type OutputItem = z.input<typeof outputItemSchema>;

export const responseUsageSchema = z.object({
  input_tokens: tokenCount,
  input_tokens_details: z.object({ cached_tokens: tokenCount, cache_write_tokens: tokenCount }),
  output_tokens: tokenCount,
  output_tokens_details: z.object({ reasoning_tokens: tokenCount.describe("As the provider reports them; else 0") }),
  total_tokens: tokenCount,
});

const given = z.unknown().describe("As in the request");

/** The answer of `POST /v1/responses`: https://platform.openai.com/docs/api-reference/responses/object. */
export const responseObjectSchema = z.object({
  id: z.string(),
  object: z.literal("response"),
  created_at: z.number().int(),
  completed_at: z.number().int().nullable(),
  status: z.enum(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]),
  error: z.object({ code: z.string(), message: z.string(), details: z.unknown().optional() }).nullable(),
  incomplete_details: z.object({ reason: z.enum(["max_output_tokens", "content_filter"]) }).nullable(),
  model: z.string(),
  output: z.array(outputItemSchema),
  usage: responseUsageSchema.nullable(),
  instructions: z.string().nullable(),
  tools: z.array(given),
  tool_choice: given,
  parallel_tool_calls: z.boolean(),
  reasoning: z.object({ effort: z.string().nullable(), summary: z.string().nullable() }),
  text: z.object({ format: given, verbosity: z.string() }),
  temperature: z.number(),
  top_p: z.number(),
  presence_penalty: z.literal(0),
  frequency_penalty: z.literal(0),
  top_logprobs: z.literal(0),
  max_output_tokens: z.number().int().nullable(),
  max_tool_calls: z.null(),
  truncation: z.literal("disabled"),
  metadata: z.record(z.string(), z.string()),
  service_tier: z.string(),
  safety_identifier: z.string().nullable(),
  prompt_cache_key: z.string().nullable(),
  user: z.string().optional(),
  store: z.boolean().describe("Whether it can be read again, once it has ended"),
  background: z.boolean(),
  previous_response_id: z.string().nullable(),
  conversation: z.object({ id: z.string() }).nullable().describe("That its items have joined"),
  logId: z.string().optional(),
  costUsd: z.number().min(0).optional(),
  cached: z.boolean().optional(),
  providerFinishReason,
});
export type ResponseObject = z.input<typeof responseObjectSchema>;

const at = { item_id: z.string(), output_index: tokenCount };
const inContent = { ...at, content_index: tokenCount };
const inSummary = { ...at, summary_index: tokenCount };
const ofResponse = { response: responseObjectSchema };
const ofItem = { output_index: tokenCount, item: outputItemSchema };

/** What the events of a stream hold, by their types: https://platform.openai.com/docs/api-reference/responses-streaming. */
const eventFields = {
  "response.created": ofResponse,
  "response.queued": ofResponse,
  "response.in_progress": ofResponse,
  "response.output_item.added": ofItem,
  "response.reasoning_summary_part.added": { ...inSummary, part: summaryText },
  "response.reasoning_summary_text.delta": { ...inSummary, delta: z.string() },
  "response.reasoning_summary_text.done": { ...inSummary, text: z.string() },
  "response.reasoning_summary_part.done": { ...inSummary, part: summaryText },
  "response.content_part.added": { ...inContent, part: outputText },
  "response.output_text.delta": { ...inContent, delta: z.string(), logprobs: noMarks },
  "response.output_text.annotation.added": { ...inContent, annotation_index: tokenCount, annotation: annotationSchema },
  "response.output_text.done": { ...inContent, text: z.string(), logprobs: noMarks },
  "response.content_part.done": { ...inContent, part: outputText },
  "response.function_call_arguments.delta": { ...at, delta: z.string() },
  "response.function_call_arguments.done": { ...at, name: z.string(), arguments: z.string() },
  "response.custom_tool_call_input.delta": { ...at, delta: z.string() },
  "response.custom_tool_call_input.done": { ...at, input: z.string() },
  "response.file_search_call.in_progress": at,
  "response.file_search_call.searching": at,
  "response.file_search_call.completed": at,
  "response.mcp_call.in_progress": at,
  "response.mcp_call_arguments.delta": { ...at, delta: z.string() },
  "response.mcp_call_arguments.done": { ...at, arguments: z.string() },
  "response.mcp_call.completed": at,
  "response.mcp_call.failed": at,
  "response.output_item.done": ofItem,
  "response.completed": ofResponse,
  "response.incomplete": ofResponse,
  "response.failed": ofResponse,
} as const;
type EventFields = typeof eventFields;

/** An event by its type. Its `sequence_number` counts from 0. */
export type ResponseEvent = {
  [T in keyof EventFields]: { type: T } & z.input<z.ZodObject<EventFields[T]>>;
}[keyof EventFields];

/** The data of an event of the stream. A stream that had begun and fails ends with `response.failed`. */
export const responseEventSchema = z.union(
  Object.entries(eventFields).map(([type, fields]) =>
    z.object({ type: z.literal(type), sequence_number: tokenCount, ...fields }),
  ),
);
