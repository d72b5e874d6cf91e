import { z } from "zod";
import {
  conversationOf,
  httpsUrl,
  imageUrl,
  MAX_PARTS,
  pdfUrl,
  text,
  toolCallId,
  toolName,
} from "../../gateway/message-schemas.ts";
import { asFormat, samplingFields, schemaFormat, tokenLimit } from "../../gateway/schemas.ts";
import { idSchema } from "../../lib/ids.ts";
import {
  allowedTools,
  chosenSearch,
  chosenTool,
  namespace,
  orOther,
  other,
  responseToolsSchema,
} from "./tool-schemas.ts";

/** A session of a coding agent has a call, its result and the reasoning of each turn. */
export const MAX_ITEMS = 2_000;
const MAX_INCLUDES = 20;
/** An item of reasoning has 1 MiB at most, and is a third longer when it is sealed. */
const MAX_SEALED_CHARACTERS = 3 << 19;

const itemId = z.string().min(1).max(200);
const inputText = z.object({ type: z.enum(["input_text", "output_text", "text"]), text });
const fileId = idSchema("file").nullish().describe("A file of `/v1/files`, whose contents go to the model");
const isOne = (...given: unknown[]) => given.filter((value) => value !== undefined && value !== null).length === 1;
const inputImage = z
  .object({
    type: z.literal("input_image"),
    image_url: imageUrl.nullish(),
    file_id: fileId,
    detail: z.enum(["auto", "low", "high", "original"]).nullish(),
  })
  .refine((part) => isOne(part.image_url, part.file_id), "must have either image_url or file_id");
const inputFile = z
  .object({
    type: z.literal("input_file"),
    filename: z.string().min(1).max(255).nullish(),
    file_data: pdfUrl.nullish(),
    file_url: httpsUrl.nullish(),
    file_id: fileId,
  })
  .refine(
    (part) => isOne(part.file_data, part.file_url, part.file_id),
    "must have either file_data, file_url or file_id",
  );
export type InputPart = z.output<typeof inputText | typeof inputImage | typeof inputFile>;

const contentOf = <S extends z.ZodType>(part: S) => z.union([text, z.array(part).max(MAX_PARTS)]);
const texts = contentOf(inputText);
const parts = contentOf(z.discriminatedUnion("type", [inputText, inputImage, inputFile]));
const said = contentOf(
  z.discriminatedUnion("type", [inputText, z.object({ type: z.literal("refusal"), refusal: text })]),
);

const message = z.discriminatedUnion("role", [
  z.object({ type: z.literal("message").optional(), role: z.enum(["system", "developer"]), content: texts }),
  z.object({ type: z.literal("message").optional(), role: z.literal("user"), content: parts }),
  z.object({ type: z.literal("message").optional(), role: z.literal("assistant"), content: said }),
]);
const functionCall = z.object({
  type: z.literal("function_call"),
  call_id: toolCallId,
  name: toolName,
  namespace,
  arguments: text,
});
const customCall = z.object({
  type: z.literal("custom_tool_call"),
  call_id: toolCallId,
  name: toolName,
  namespace,
  input: text,
});
const functionCallOutput = z.object({
  type: z.enum(["function_call_output", "custom_tool_call_output"]),
  call_id: toolCallId,
  output: parts,
});
const reasoning = z.object({
  type: z.literal("reasoning"),
  id: itemId
    .nullish()
    .describe("Of a stored response's reasoning, which is taken from it where its content is left out"),
  encrypted_content: z.string().max(MAX_SEALED_CHARACTERS).nullish().describe("As the response had it"),
});
const compaction = z.object({
  type: z.literal("compaction"),
  encrypted_content: z.string().max(MAX_SEALED_CHARACTERS).describe("As `/v1/responses/compact` had it"),
});

const fileSearchCall = z.object({
  type: z.literal("file_search_call"),
  queries: z.array(text).max(MAX_INCLUDES).nullish(),
});

const approvalResponse = z
  .object({
    type: z.literal("mcp_approval_response"),
    approval_request_id: idSchema("approval"),
    approve: z.boolean(),
    reason: z.string().max(4_000).nullish(),
  })
  .describe("Decides on a `mcp_approval_request` of an agent, whose run goes on in this response");

/** Tools of a later turn, or of a client that sends all of its tools like this. */
const moreTools = z.object({ type: z.literal("additional_tools"), tools: responseToolsSchema });

/** A reference may leave its type out, or have null there: it has an id and nothing else. */
function asReference(item: unknown): unknown {
  if (typeof item !== "object" || item === null || !("id" in item)) return item;
  const { type, id, ...rest } = item as { type?: unknown; id: unknown };
  return (type ?? undefined) === undefined && Object.keys(rest).length === 0 ? { type: "item_reference", id } : item;
}

/** One item of a conversation: https://platform.openai.com/docs/api-reference/responses/create. */
export const inputItemSchema = orOther(
  [
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "file_search_call",
    "reasoning",
    "compaction",
    "mcp_approval_response",
    "item_reference",
    "additional_tools",
  ],
  z.discriminatedUnion("type", [
    message,
    functionCall,
    functionCallOutput,
    customCall,
    fileSearchCall,
    reasoning,
    compaction,
    approvalResponse,
    moreTools,
    z.object({ type: z.literal("item_reference"), id: itemId }),
    other,
  ]),
  asReference,
);
export type InputItem = z.output<typeof inputItemSchema>;

const textFormat = asFormat(
  z.discriminatedUnion("type", [
    z.object({ type: z.literal("text") }),
    z.object({ type: z.literal("json_object") }),
    schemaFormat.extend({ type: z.literal("json_schema") }),
  ]),
).describe("An answer that does not match its schema is an error, `response_format_mismatch`");

/** OpenAI has no `stop` here; other servers of this API, and clients of ours, do. */
const { response_format: _format, reasoning_effort, verbosity, seed: _seed, ...settings } = samplingFields;

/** Without it a model would answer another question than its caller asks. */
const absent = z.null("is not kept here; send what it says as instructions and input").optional();
const compactedAhead = z
  .array(z.never("is not offered on a response; compact the conversation by /v1/responses/compact"))
  .nullish();

/** The body of `POST /v1/responses`: https://platform.openai.com/docs/api-reference/responses/create. */
export const responsesBodySchema = z.object({
  model: z
    .string()
    .min(1)
    .max(200)
    .describe("A model, `meta-llm`, `auto`, `agent:<agentId or name>` or `composite:<pattern>[:<profile>]`"),
  input: z.union([text, conversationOf(inputItemSchema, MAX_ITEMS)]),
  instructions: text.nullish().describe("Put before the input as a system message"),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_obfuscation: z.boolean().nullish() }).nullish(),
  tools: responseToolsSchema.nullish(),
  tool_choice: z
    .union([
      z.enum(["auto", "none", "required"]),
      z.discriminatedUnion("type", [chosenTool, chosenSearch, allowedTools]),
    ])
    .nullish(),
  reasoning: z
    .object({
      effort: reasoning_effort,
      summary: z.enum(["auto", "concise", "detailed"]).nullish(),
    })
    .nullish(),
  text: z.object({ format: textFormat.nullish(), verbosity }).nullish(),
  include: z
    .array(z.string().max(200))
    .max(MAX_INCLUDES)
    .nullish()
    .describe("`reasoning.encrypted_content`, `file_search_call.results`"),
  max_output_tokens: tokenLimit.nullish(),
  ...settings,
  truncation: z.enum(["auto", "disabled"]).nullish(),
  store: z.boolean().nullish().describe("Whether it can be read again; default true"),
  background: z.boolean().nullish().describe("Make it by a job, which is polled, streamed or cancelled by its id"),
  previous_response_id: z
    .string()
    .min(1)
    .max(200)
    .nullish()
    .describe("A stored response, which is continued, whatever model made it"),
  conversation: z
    .union([itemId, z.object({ id: itemId }).transform(({ id }) => id)])
    .nullish()
    .describe(
      "A conversation of `/v1/conversations`, or its id: its items come first, and those of the response join it",
    ),
  context_management: compactedAhead,
  prompt: absent,
});
export type ResponsesBody = z.output<typeof responsesBodySchema>;
