import type { ChatRequest } from "../../../gateway/chat/request.ts";
import { type AssistantPart, type Message, toAssistantMessage } from "../../../gateway/messages.ts";
import type { ToolChoice, Usage } from "../../../gateway/providers/provider.ts";
import { findSentence } from "../../../rag/quotes.ts";
import type { Citation } from "../citations.ts";
import { fileSearchName } from "../file-search.ts";
import type { SearchResult } from "../search-items.ts";
import type { ResponseDelta } from "../steps.ts";

/** Times that a response may search before its model must answer with what it has. */
export const MAX_ROUNDS = 6;
/** Most characters of passages that a model gets of one search. */
const MAX_CHARACTERS = 60_000;

/**
 * A search that a model asked for, and what it found; `searched` are the query and what was written for it, `problem` says why it
 * found nothing.
 */
export type Search = { id: string; query: string; searched?: string[]; results: SearchResult[]; problem?: string };

/** A turn of the model that ended with searches. It is kept, so that an attempt after a crash pays for none of it again. */
export type Round = {
  /** What it said, as the response has it. */
  said: ResponseDelta[];
  /** What it said and called, as it goes back to the model. */
  turn: AssistantPart[];
  searches: Search[];
  usage: Usage;
  costUsd: number;
};

/** The passages that were found so far, by the numbers of their marks. */
export function makePassages() {
  const passages: { citation: Citation; text: string }[] = [];
  const numbers = new Map<string, number>();
  return {
    isEmpty: () => passages.length === 0,
    find: (mark: number): Citation | undefined => passages[mark - 1]?.citation,
    /** A citation with the words of its passage that are nearest to the statement which rests on it. */
    quote(citation: Citation, statement: string): Citation {
      const passage = passages[(numbers.get(citation.chunk_id) ?? 0) - 1];
      const quote = passage && findSentence(passage.text, statement)?.quote;
      return { ...citation, ...(quote === undefined ? {} : { quote }) };
    },
    /** The number of a passage, which keeps the first one that it gets. */
    number({ text, score: _score, attributes: _attributes, ...citation }: SearchResult): number {
      const known = numbers.get(citation.chunk_id);
      if (known !== undefined) return known;
      const number = passages.push({ citation, text });
      numbers.set(citation.chunk_id, number);
      return number;
    },
  };
}
export type Passages = ReturnType<typeof makePassages>;

/** A round as a part of the conversation. */
export function toMessages({ turn, searches }: Round, passages: Passages): Message[] {
  const found = searches.map(
    (search): Message => ({ role: "tool", toolCallId: search.id, content: describe(search, passages) }),
  );
  return [toAssistantMessage(turn), ...found];
}

/** What a model gets of a search's results. Our own offline model does not quote what stands between `instructions`. */
function describe({ results, problem }: Search, passages: Passages): string {
  if (problem !== undefined) return `<instructions>The search failed: ${problem}</instructions>`;
  if (results.length === 0) return "<instructions>The search found nothing. Try other words.</instructions>";
  const parts: string[] = [];
  let left = MAX_CHARACTERS;
  for (const result of results) {
    left -= result.text.length;
    if (left < 0 && parts.length > 0) break;
    parts.push(`【${passages.number(result)}】 ${result.filename}\n${result.text.slice(0, MAX_CHARACTERS)}`);
  }
  const mark = "Put the mark of a passage, as 【1】, right after each statement that rests on it.";
  return [`<instructions>${mark}</instructions>`, ...parts].join("\n\n");
}

/** What the model is asked after these rounds, one at least. A call that was demanded was made; after the last round it must answer. */
export function toNextRequest(
  request: ChatRequest,
  rounds: readonly Round[],
  messages: readonly Message[],
): ChatRequest {
  const { toolChoice, ...rest } = request;
  const choice = rounds.length >= MAX_ROUNDS ? "none" : withoutDemand(toolChoice);
  return {
    ...rest,
    messages: [...request.messages, ...messages],
    ...(choice === undefined ? {} : { toolChoice: choice }),
  };
}

function withoutDemand(choice: ToolChoice | undefined): ToolChoice | undefined {
  if (choice === "required") return "auto";
  return typeof choice === "object" && "name" in choice && choice.name === fileSearchName ? "auto" : choice;
}
