import { z } from "zod";
import type { AssistantPart } from "../../../gateway/messages.ts";
import type { Usage } from "../../../gateway/providers/provider.ts";
import { annotationSchema, searchResultSchema } from "../response-schemas.ts";
import type { ResponseDelta } from "../steps.ts";
import type { Round } from "./rounds.ts";

const id = z.string();
const text = z.string();
const item = z.record(z.string(), z.unknown());
const texts = z.array(text);
const results = z.array(searchResultSchema);

const delta: z.ZodType<ResponseDelta> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text-delta"), text }),
  z.object({ type: z.literal("reasoning-delta"), text }),
  z.object({ type: z.literal("reasoning-item"), provider: z.string(), item }),
  z.object({
    type: z.literal("tool-call-delta"),
    index: z.number(),
    id: id.exactOptional(),
    name: z.string().exactOptional(),
    argumentsDelta: z.string(),
  }),
  z.object({ type: z.literal("step-call"), id, server: z.string(), name: z.string(), arguments: z.string() }),
  z.object({ type: z.literal("step-result"), id, output: z.string(), isError: z.boolean() }),
  z.object({ type: z.literal("search-call"), id, queries: z.array(z.string()) }),
  z.object({ type: z.literal("search-result"), id, queries: texts.exactOptional(), results, hasFailed: z.boolean() }),
  z.object({ type: z.literal("citation"), of: annotationSchema.omit({ type: true, index: true }) }),
]);

const part: z.ZodType<AssistantPart> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text }),
  z.object({ type: z.literal("reasoning"), provider: z.string(), item }),
  z.object({ type: z.literal("tool-call"), id, name: z.string(), arguments: z.string() }),
]);

const usage: z.ZodType<Usage> = z.object({
  inputTokens: z.number(),
  outputTokens: z.number(),
  cachedTokens: z.number().exactOptional(),
  cacheWriteTokens: z.number().exactOptional(),
  hourWriteTokens: z.number().exactOptional(),
  reasoningTokens: z.number().exactOptional(),
  isFlex: z.literal(true).exactOptional(),
});

const rounds: z.ZodType<Round[]> = z.array(
  z.object({
    said: z.array(delta),
    turn: z.array(part),
    searches: z.array(
      z.object({ id, query: text, searched: texts.exactOptional(), results, problem: text.exactOptional() }),
    ),
    usage,
    costUsd: z.number(),
  }),
);

/** The rounds of an earlier attempt by their stored text; none without one. */
export const readRounds = (stored: string | undefined): Round[] =>
  stored === undefined ? [] : rounds.parse(JSON.parse(stored));
