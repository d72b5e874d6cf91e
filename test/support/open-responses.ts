import { z } from "zod";

/**
 * The shapes of the specification Open Responses of 2026-04-24 (https://www.openresponses.org/reference), as its document has
 * them: what it requires must be there, and what it does not name is free.
 */
const count = z.number().int().min(0);
const status = z.enum(["in_progress", "completed", "incomplete"]);

const citation = z.object({
  type: z.literal("url_citation"),
  url: z.string(),
  start_index: count,
  end_index: count,
  title: z.string(),
});
const logprob = z.object({
  token: z.string(),
  logprob: z.number(),
  bytes: z.array(count),
  top_logprobs: z.array(z.object({ token: z.string(), logprob: z.number(), bytes: z.array(count) })),
});
const outputText = z.object({
  type: z.literal("output_text"),
  text: z.string(),
  annotations: z.array(citation),
  logprobs: z.array(logprob).optional(),
});
const summaryText = z.object({ type: z.literal("summary_text"), text: z.string() });
const contentPart = z.discriminatedUnion("type", [
  outputText,
  summaryText,
  z.object({ type: z.enum(["input_text", "text", "reasoning_text"]), text: z.string() }),
  z.object({ type: z.literal("refusal"), refusal: z.string() }),
  z.object({
    type: z.literal("input_image"),
    image_url: z.string().nullable(),
    detail: z.enum(["low", "high", "auto"]),
  }),
  z.object({ type: z.literal("input_file"), filename: z.string().optional(), file_url: z.string().optional() }),
]);

const item = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("message"),
    id: z.string(),
    status,
    role: z.enum(["user", "assistant", "system", "developer"]),
    content: z.array(contentPart),
  }),
  z.object({
    type: z.literal("function_call"),
    id: z.string(),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
    status,
  }),
  z.object({
    type: z.literal("function_call_output"),
    id: z.string(),
    call_id: z.string(),
    output: z.union([z.string(), z.array(contentPart)]),
    status,
  }),
  z.object({
    type: z.literal("reasoning"),
    id: z.string(),
    summary: z.array(contentPart),
    content: z.array(contentPart).optional(),
    encrypted_content: z.string().optional(),
  }),
]);

const functionTool = z.object({
  type: z.literal("function"),
  name: z.string(),
  description: z.string().nullable(),
  parameters: z.record(z.string(), z.unknown()).nullable(),
  strict: z.boolean().nullable(),
});
const choiceMode = z.enum(["none", "auto", "required"]);
const functionChoice = z.object({ type: z.literal("function"), name: z.string().optional() });
const format = z.discriminatedUnion("type", [
  z.object({ type: z.enum(["text", "json_object"]) }),
  z.object({
    type: z.literal("json_schema"),
    name: z.string(),
    description: z.string().nullable(),
    // The document says null, while every server that speaks this API repeats the schema.
    schema: z.record(z.string(), z.unknown()).nullable(),
    strict: z.boolean(),
  }),
]);

/** A response. */
export const responseShape = z.object({
  id: z.string(),
  object: z.literal("response"),
  created_at: count,
  completed_at: count.nullable(),
  status: z.string(),
  incomplete_details: z.object({ reason: z.string() }).nullable(),
  model: z.string(),
  previous_response_id: z.string().nullable(),
  instructions: z.string().nullable(),
  output: z.array(item),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  tools: z.array(functionTool),
  tool_choice: z.union([
    choiceMode,
    functionChoice,
    z.object({ type: z.literal("allowed_tools"), tools: z.array(functionChoice), mode: choiceMode }),
  ]),
  truncation: z.enum(["auto", "disabled"]),
  parallel_tool_calls: z.boolean(),
  text: z.object({ format, verbosity: z.enum(["low", "medium", "high"]).optional() }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: count,
  temperature: z.number(),
  reasoning: z
    .object({
      effort: z.enum(["none", "low", "medium", "high", "xhigh"]).nullable(),
      summary: z.enum(["concise", "detailed", "auto"]).nullable(),
    })
    .nullable(),
  usage: z
    .object({
      input_tokens: count,
      output_tokens: count,
      total_tokens: count,
      input_tokens_details: z.object({ cached_tokens: count }),
      output_tokens_details: z.object({ reasoning_tokens: count }),
    })
    .nullable(),
  max_output_tokens: count.nullable(),
  max_tool_calls: count.nullable(),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: z.string(),
  metadata: z.unknown(),
  safety_identifier: z.string().nullable(),
  prompt_cache_key: z.string().nullable(),
});
export type ShapedResponse = z.output<typeof responseShape>;

const ofResponse = { response: responseShape };
const ofItem = { output_index: count, item };
const at = { item_id: z.string(), output_index: count };
const inContent = { ...at, content_index: count };
const inSummary = { ...at, summary_index: count };
const logprobs = z.array(logprob).optional();

const fieldsOf: Readonly<Record<string, z.ZodRawShape>> = {
  "response.created": ofResponse,
  "response.queued": ofResponse,
  "response.in_progress": ofResponse,
  "response.completed": ofResponse,
  "response.failed": ofResponse,
  "response.incomplete": ofResponse,
  "response.output_item.added": ofItem,
  "response.output_item.done": ofItem,
  "response.content_part.added": { ...inContent, part: contentPart },
  "response.content_part.done": { ...inContent, part: contentPart },
  "response.output_text.delta": { ...inContent, delta: z.string(), logprobs },
  "response.output_text.done": { ...inContent, text: z.string(), logprobs },
  "response.reasoning_summary_part.added": { ...inSummary, part: contentPart },
  "response.reasoning_summary_part.done": { ...inSummary, part: contentPart },
  "response.reasoning_summary_text.delta": { ...inSummary, delta: z.string() },
  "response.reasoning_summary_text.done": { ...inSummary, text: z.string() },
  "response.function_call_arguments.delta": { ...at, delta: z.string() },
  "response.function_call_arguments.done": { ...at, arguments: z.string() },
};

/** An event of a stream. */
export const eventShape = z.discriminatedUnion(
  "type",
  Object.entries(fieldsOf).map(([type, fields]) =>
    z.object({ type: z.literal(type), sequence_number: count, ...fields }),
  ) as [z.ZodObject<{ type: z.ZodLiteral<string>; sequence_number: z.ZodNumber }>], // the table is not empty
);
