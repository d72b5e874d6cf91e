import { z } from "zod";
import { type ChatRequest, toChatRequest } from "../../gateway/chat/request.ts";
import type { AnsweredChat } from "../../gateway/chat/steps.ts";
import { type Message, textOf } from "../../gateway/messages.ts";
import { AppError, invalidRequest } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";
import type { InputItem } from "./request-schemas.ts";

/** How the text begins that holds a summary; what begins otherwise was made elsewhere. */
const HEAD = "svc1.summary.";
const sealed = z.object({ summary: z.string().min(1) });
const title = "Summary of the conversation up to here:";

/** A summary as an item that clients send back as it is. */
const toItem = (summary: string) => ({
  type: "compaction" as const,
  id: newId("compaction"),
  encrypted_content: HEAD + Buffer.from(JSON.stringify({ summary })).toString("base64url"),
});

/** What an item of a summary says to a model. @throws AppError `invalid_request` for one that was made elsewhere. */
export function readSummary({ encrypted_content: text }: { encrypted_content: string }, param: string): string {
  const json = text.startsWith(HEAD) ? Buffer.from(text.slice(HEAD.length), "base64url").toString() : "";
  const parsed = sealed.safeParse(tryParseJson(json));
  if (parsed.success) return `${title}\n\n${parsed.data.summary}`;
  throw invalidRequest(`${param}.encrypted_content`, `${param}.encrypted_content was not made here.`);
}

const task =
  "The conversation below is about to be replaced by your summary of it. Write what an assistant needs to go on without it: " +
  "what is asked for, what was found and decided, names, numbers, ids and paths as they stand, results of tools, and what is " +
  "left to do. Keep to what was said. Answer with the summary alone.";

type Asked = { model: string; instructions?: string | null | undefined; prompt_cache_key?: string | null | undefined };

/**
 * The chat that asks a model for a summary. It gets the conversation as one text: so it answers none of the questions, needs no
 * tools, and every provider takes a history of calls.
 */
export function toSummaryRequest(
  { model, instructions, prompt_cache_key }: Asked,
  messages: readonly Message[],
): ChatRequest {
  const about = instructions ? [`Instructions of the assistant:\n${instructions}`] : [];
  const content = [task, ...about, "Conversation:", ...messages.map(toText)].join("\n\n");
  const request = toChatRequest({ model, stream: false, prompt_cache_key, messages: [{ role: "user", content }] });
  return { ...request, options: { cache: false } };
}

function toText(message: Message): string {
  const { role } = message;
  const calls = role === "assistant" ? (message.toolCalls ?? []) : [];
  const said = textOf(message.content);
  const lines = calls.map(({ name, arguments: input }) => `[calls ${name}] ${input}`);
  return `${role}: ${[...(said === "" ? [] : [said]), ...lines].join("\n")}`;
}

/**
 * What a conversation is replaced by: what its user said, and the summary of all of it.
 * @throws AppError `provider_failed` for a summary that is empty or was cut: with it the conversation would be lost.
 */
export function toCompacted(items: readonly InputItem[], { text, finishReason }: AnsweredChat) {
  if (finishReason !== "stop" || text.trim() === "") {
    const message = "The model gave no whole summary of the conversation.";
    throw new AppError("provider_failed", message, { details: { finishReason } });
  }
  const said = items.flatMap((item) => ("role" in item && item.role === "user" ? [item] : []));
  return [
    ...said.map(({ content, ...item }) => ({
      ...item,
      id: newId("message"),
      type: "message" as const,
      status: "completed" as const,
      content: typeof content === "string" ? [{ type: "input_text" as const, text: content }] : content,
    })),
    toItem(text),
  ];
}
