import { z } from "zod";
import { toChatRequest } from "../../src/gateway/chat/request.ts";
import { toWireUsage } from "../../src/gateway/chat/response.ts";
import { type Citation, citationSchema } from "../../src/gateway/citation.ts";
import { type Message, textOf } from "../../src/gateway/messages.ts";
import type { FinishReason } from "../../src/gateway/providers/provider.ts";
import { AGENT } from "../../src/gateway/run-model-names.ts";
import type { ChatBody } from "../../src/gateway/schemas.ts";
import { AppError, invalidRequest, isBudgetExhausted } from "../../src/lib/errors.ts";
import { NOTHING_FOUND } from "../../src/rag/answer/answer.ts";
import { answerBodySchema } from "../../src/rag/answer/schemas.ts";
import type { ChatCaller } from "../../src/run-models/deps.ts";
import type { WidgetScope } from "../../src/tenancy/roles.ts";
import type { HandlerInput, Reply, SseMessage } from "../route.ts";

/** What a visitor sees of a citation: neither ids, nor an address that the key's maker does not allow. */
const sourceSchema = z.object({
  title: z.string(),
  page: z.int().optional(),
  heading: z.string().optional(),
  quote: z.string(),
  url: z.string().optional().describe("If its origin is among the `linkOrigins` of the key"),
});
type Source = z.output<typeof sourceSchema>;

/** What the answer of a widget key that searches has besides that of a chat. */
export const sourceFields = {
  citations: z.array(sourceSchema).optional().describe("Of a widget key that searches: its sources"),
  linkOrigins: z.array(z.string()).optional().describe("Of such a key: where its answers may link to"),
  found: z.boolean().optional().describe("Of such a key: whether there are sources"),
  nothingFound: z.literal(true).optional().describe("Set if the answer says no more than that there is none"),
};

/** Where the stream of such a key differs: it begins with the origins, and ends with the sources. */
export const visitorEventSchema = z.union([
  z.object({ delta: z.object({ content: z.literal("") }), linkOrigins: z.array(z.string()), done: z.literal(false) }),
  z.looseObject({ ...sourceFields, citations: z.array(sourceSchema), found: z.boolean(), done: z.literal(true) }),
]);

/** What a run that has searched says of its sources. */
const citedSchema = z.object({ citations: z.array(citationSchema).default([]), stopReason: z.string().optional() });

/** What is read of a conversation, in messages and characters of each. */
const MAX_MESSAGES = 40;
const MAX_MESSAGE = 16_000;

type Asked = { caller: ChatCaller; widget: WidgetScope; body: ChatBody & { maxTokens: number } };
type Answered = {
  citations: Source[];
  logId: string;
  model: string;
  finishReason: FinishReason;
  inputTokens: number;
  outputTokens: number;
  costUsd: number;
  nothingFound?: true;
};
/** A part of an answer's text, or its end. */
type Part = { text: string } | Answered;

/**
 * Answers a visitor from the documents of a widget key: by its agent's run, which has the search alone, or by its collections.
 * @throws AppError as a chat does; `invalid_request`; `insufficient_scope` if its agent was deleted.
 */
export async function answerVisitor(platform: HandlerInput["platform"], asked: Asked): Promise<Reply> {
  const { body, widget } = asked;
  const messages = readConversation(body);
  const parts =
    widget.agentId === undefined ? askDocuments(platform, asked, messages) : askAgent(platform, asked, messages);
  const linkOrigins = [...(widget.answersFrom?.linkOrigins ?? [])];
  const answering = concealing(parts);
  if (body.stream) return { status: 200, events: toSse(answering, linkOrigins) };
  let text = "";
  for await (const part of answering) {
    if ("text" in part) text += part.text;
    else return { status: 200, body: toBody(text, part, linkOrigins) };
  }
  throw unfinished();
}

const unfinished = () =>
  new AppError("provider_failed", "The stream ended before the answer did.", { retryable: true });

/** @throws AppError `invalid_request` for messages of others than a visitor and the model, and for a last one of the model. */
function readConversation(body: ChatBody): Message[] {
  const { messages } = toChatRequest(body);
  const foreign = messages.findIndex(({ role }) => role !== "user" && role !== "assistant");
  const param = `messages[${foreign}].role`;
  if (foreign >= 0) throw invalidRequest(param, `${param} must be user or assistant.`);
  if (messages.at(-1)?.role !== "user") throw invalidRequest("messages", "messages: the last one must be the user's.");
  return messages;
}

async function* askDocuments(
  { rag }: HandlerInput["platform"],
  { caller, widget, body: { model, maxTokens } }: Asked,
  messages: Message[],
): AsyncGenerator<Part> {
  const said = messages.map(({ role, content }) => ({ role, content: textOf(content) }));
  const query = said.pop()?.content;
  const history = said.slice(-MAX_MESSAGES).map((one) => ({ ...one, content: one.content.slice(0, MAX_MESSAGE) }));
  const parsed = answerBodySchema.safeParse({ query, history, model });
  if (!parsed.success) throw invalidRequest("messages", `messages: the last one ${parsed.error.issues[0]?.message}.`);
  for await (const batch of rag.answering.stream(caller, { ...parsed.data, maxTokens })) {
    for (const event of batch) {
      if ("delta" in event) yield { text: event.delta.content };
      else if ("answer" in event) {
        const { usage, costUsd, logId, finishReason = "stop" } = event;
        yield {
          citations: event.citations.map((citation) => toSource(citation, widget)),
          model: event.model ?? parsed.data.model,
          ...{ costUsd, logId, finishReason },
          inputTokens: usage.prompt_tokens,
          outputTokens: usage.completion_tokens,
          ...(event.answer === NOTHING_FOUND && { nothingFound: true }),
        };
      }
    }
  }
}

async function* askAgent(
  { agents, chat: models }: HandlerInput["platform"],
  { caller, widget, body: { maxTokens } }: Asked,
  messages: Message[],
): AsyncGenerator<Part> {
  const { agentId = "" } = widget;
  const gone = () => new AppError("insufficient_scope", "The agent of this widget key was deleted.");
  if ((await agents.definitionOf(caller.tenantId, agentId)) === null) throw gone();
  const signal = cancelling(caller.signal);
  const visitor = { ...caller, signal, visitor: { maxTokens } };
  const chat = await models.plan(visitor, { model: `${AGENT}${agentId}`, messages });
  let isAnswered = false;
  for await (const batch of models.stream(chat)) {
    for (const event of batch) {
      // What the agent thought and found on its way is not for visitors.
      if (event.type === "text-delta" && event.text !== "") {
        isAnswered = true;
        yield { text: event.text };
      }
      if (event.type === "end") {
        const { logId, costUsd, usage, model, finishReason } = event;
        const { citations, stopReason } = citedSchema.parse(await agents.runOf(caller, logId));
        if (!isAnswered && stopReason === "budget_exhausted")
          throw new AppError("budget_exhausted", "The run had no budget left.");
        yield {
          citations: citations.map((citation) => toSource(citation, widget)),
          ...{ logId, costUsd, model, finishReason },
          inputTokens: usage.inputTokens,
          outputTokens: usage.outputTokens,
        };
      }
    }
  }
}

/** Aborts so that the run of a visitor who leaves is cancelled: nobody comes back for it. */
function cancelling(signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const cancel = () => controller.abort(new AppError("cancelled", "The visitor has left."));
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  return controller.signal;
}

function toSource({ title, page, heading, quote, url }: Citation, { answersFrom }: WidgetScope): Source {
  const mayLink =
    url !== undefined &&
    /^https?:/i.test(url) &&
    URL.canParse(url) &&
    (answersFrom?.linkOrigins.includes(new URL(url).origin) ?? false);
  return {
    title,
    quote,
    ...(page === undefined ? {} : { page }),
    ...(heading === undefined ? {} : { heading }),
    ...(mayLink ? { url } : {}),
  };
}

/** The origins come first, so that no link of the answer is shown before it is known where it may lead. */
async function* toSse(parts: AsyncIterable<Part>, linkOrigins: string[]): AsyncGenerator<SseMessage[]> {
  let isBegun = false;
  for await (const part of parts) {
    const messages: SseMessage[] = isBegun ? [] : [{ data: { delta: { content: "" }, linkOrigins, done: false } }];
    isBegun = true;
    if ("text" in part) messages.push({ data: { delta: { content: part.text }, done: false } });
    else messages.push({ data: { done: true, cached: false, found: part.citations.length > 0, ...part } });
    yield messages;
  }
  if (!isBegun) throw unfinished();
}

function toBody(text: string, { finishReason, ...answered }: Answered, linkOrigins: string[]) {
  const message = { role: "assistant", content: text };
  const usage = toWireUsage({ inputTokens: answered.inputTokens, outputTokens: answered.outputTokens });
  const choices = [{ message, finish_reason: finishReason }];
  return { text, choices, usage, cached: false, found: answered.citations.length > 0, linkOrigins, ...answered };
}

/** Visitors of a page must not learn what budget its tenant has. */
export function conceal(error: unknown): never {
  if (!isBudgetExhausted(error)) throw error;
  throw new AppError("budget_exhausted", "This chat's budget is used up for now.", { cause: error });
}

export async function* concealing<T>(events: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* events;
  } catch (error) {
    conceal(error);
  }
}
