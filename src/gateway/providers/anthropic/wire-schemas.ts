import { z } from "zod";

/**
 * What is read of Anthropic's Messages API (API reference, "Create a Message" and "Streaming messages"). Blocks and events
 * of kinds that are not named here are passed over: their documentation says that new ones may come.
 */
const usage = z.object({
  input_tokens: z.number(),
  output_tokens: z.number(),
  cache_read_input_tokens: z.number().nullish(),
  cache_creation_input_tokens: z.number().nullish(),
  /** Those that were written, by how long they are kept. */
  cache_creation: z.object({ ephemeral_1h_input_tokens: z.number().nullish() }).nullish().catch(undefined),
});

const textBlock = z.object({ type: z.literal("text"), text: z.string() });
/** Loose, because it goes back as it came. */
const thinkingBlock = z.looseObject({ type: z.literal("thinking"), thinking: z.string() });
const redactedBlock = z.looseObject({ type: z.literal("redacted_thinking") });
const toolUseBlock = z.object({
  type: z.literal("tool_use"),
  id: z.unknown().optional(),
  name: z.string(),
  input: z.unknown().optional(),
});
const knownBlocks = ["text", "thinking", "redacted_thinking", "tool_use"];
const otherBlock = z
  .object({ type: z.string().refine((type) => !knownBlocks.includes(type)) })
  .transform(() => undefined);

export const wireMessage = z.object({
  content: z.array(z.union([textBlock, thinkingBlock, redactedBlock, toolUseBlock, otherBlock])),
  id: z.string().nullish().catch(undefined),
  model: z.string().nullish(),
  stop_reason: z.string().nullish(),
  usage: usage.nullish().catch(undefined),
});

export type WireMessage = z.infer<typeof wireMessage>;

/** The usage of a message; a stream reports the prompt's at its start, and all of it, again or in part, at its end. */
export type WireUsage = { [Field in keyof z.infer<typeof usage>]?: z.infer<typeof usage>[Field] | null | undefined };

/** One event of a streamed message. It is checked by hand as it is read, because there is one for every few tokens. */
export type WireEvent = {
  type?: string;
  index?: number;
  message?: { id?: unknown; model?: unknown; usage?: WireUsage | null };
  content_block?: {
    type?: string;
    id?: string;
    name?: string;
    input?: unknown;
    text?: string;
    thinking?: string;
    signature?: string;
  };
  delta?: {
    type?: string;
    text?: string;
    thinking?: string;
    signature?: string;
    partial_json?: unknown;
    stop_reason?: string | null;
  };
  usage?: WireUsage | null;
  error?: unknown;
};
