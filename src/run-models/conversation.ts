import type { z } from "zod";
import type { ChatRequest } from "../gateway/chat/request.ts";
import { type Message, textOf } from "../gateway/messages.ts";
import { AppError, invalidRequest } from "../lib/errors.ts";
import { noteRefused } from "../net/call-scope.ts";
import type { RunTurn } from "../store/agent-run-store.ts";

/** A text of a conversation, with its field in the request. */
type Said = { content: string; field: string };

/** A conversation as a run takes it: what the user asks, and what was said before. */
export type Conversation = {
  input: Said;
  history: (RunTurn & Said)[];
  /** The first picture or file. */
  media: { field: string; name: "pictures" | "files" } | undefined;
  /** Fields that a run has no use for. */
  ignored: string[];
};

/** @throws AppError `invalid_request` when it does not end with a message of the user. */
export function toConversation({ systemPrompt, messages }: ChatRequest): Conversation {
  const place = messages.findLastIndex(({ role }) => role !== "system");
  const asked = messages[place];
  const last = Math.max(0, messages.length - 1);
  if (asked?.role !== "user")
    throw invalidRequest(fieldOf(last), "A run answers the user, who must have the last word.");
  const history: Conversation["history"] = [];
  const ignored: string[] = [];
  const add = (role: RunTurn["role"], { content, field }: Said) => {
    if (content !== "") history.push({ role, content, field });
  };
  add("system", { content: systemPrompt ?? "", field: "systemPrompt" });
  for (const [at, message] of messages.entries()) {
    if (at === place) continue;
    if (message.role === "tool") ignored.push(fieldOf(at));
    else add(message.role, { content: textOf(message.content), field: fieldOf(at) });
    if (message.role === "assistant" && message.toolCalls) ignored.push(`messages[${at}].tool_calls`);
  }
  const input = { content: textOf(asked.content), field: fieldOf(place) };
  return { input, history, media: findMedia(messages), ignored };
}

const fieldOf = (place: number) => `messages[${place}].content`;

function findMedia(messages: readonly Message[]): Conversation["media"] {
  for (const [place, { content }] of messages.entries()) {
    if (typeof content === "string") continue;
    const part = content.findIndex(({ type }) => type !== "text");
    if (part < 0) continue;
    return { field: `${fieldOf(place)}[${part}]`, name: content[part]?.type === "image" ? "pictures" : "files" };
  }
  return undefined;
}

/**
 * Runs take texts alone, and a guard reads nothing else; `profile` is that of the guard.
 * @throws AppError `invalid_request`; `compliance_blocked` where there is a guard.
 */
export function refuseMedia({ media }: Conversation, what: string, profile: string | undefined): void {
  if (media === undefined) return;
  const { field, name } = media;
  if (profile === undefined) throw invalidRequest(field, `${field}: ${what} takes no ${name}, but texts alone.`);
  noteRefused([]);
  const why = `The profile ${profile} takes no ${name}, which its guard cannot read.`;
  const message = `${why} Nothing was kept, and no model was asked.`;
  throw new AppError("compliance_blocked", message, { param: field, details: { profile } });
}

/** The conversation as one text, for a run that takes one; a question alone stays as it is. */
export function toOneText({ input, history }: Conversation): string {
  if (history.length === 0) return input.content;
  const system = history.flatMap(({ role, content }) => (role === "system" ? [content] : []));
  const turns = history.flatMap(({ role, content }) =>
    role === "system" ? [] : [`${role === "user" ? "User" : "Assistant"}: ${content}`],
  );
  const parts = [
    ...(system.length === 0 ? [] : [`Instructions:\n${system.join("\n\n")}`]),
    ...(turns.length === 0 ? [] : [`The conversation so far:\n\n${turns.join("\n\n")}`]),
    turns.length === 0 ? input.content : `User: ${input.content}`,
  ];
  return parts.join("\n\n");
}

/** The field of the chat that a field of a run's body was made of. */
export function fieldIn({ input, history }: Conversation, name: string): string {
  if (name === "input") return input.field;
  if (name === "history") return "messages";
  const place = /^history\[(\d+)\]/.exec(name)?.[1];
  return history[Number(place)]?.field ?? name;
}

/** The body of a run, checked as on its own route. @throws AppError `invalid_request`. */
export function parseRun<S extends z.ZodType>(schema: S, body: z.input<S>): z.output<S> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const [name = "", place] = issue?.path ?? [];
  const field = place === undefined ? String(name) : `${String(name)}[${String(place)}]`;
  throw invalidRequest(field, `${field} ${issue?.message}.`);
}
