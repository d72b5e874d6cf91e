import type { ChatRequest } from "../../../gateway/chat/request.ts";
import type { AnsweredChat, ChatEvent } from "../../../gateway/chat/steps.ts";
import type { StreamEnd } from "../../../gateway/chat/stream.ts";
import { toDeltas } from "../../../gateway/chat/streamed-response.ts";
import type { AssistantPart } from "../../../gateway/messages.ts";
import { addUsage } from "../../../gateway/money/prices.ts";
import type { Usage } from "../../../gateway/providers/provider.ts";
import { isRunModel } from "../../../gateway/run-model-names.ts";
import { AppError } from "../../../lib/errors.ts";
import { tryParseJson } from "../../../lib/try-parse-json.ts";
import { chooseCollections } from "../../../rag/collections.ts";
import { findSentence } from "../../../rag/quotes.ts";
import type { ChatCaller, PlannedAnswer } from "../../../run-models/deps.ts";
import type { Chat } from "../../../run-models/run-models.ts";
import type { FoundPassage } from "../../../vector-stores/search.ts";
import type { VectorStores } from "../../../vector-stores/vector-stores.ts";
import { makeCitations } from "../citations.ts";
import { type FileSearch, fileSearchName } from "../file-search.ts";
import { annotate, annotateStream } from "../run-citations.ts";
import type { SearchDelta, SearchResult } from "../search-items.ts";
import type { AnsweredResponse, ResponseDelta, ResponseStep } from "../steps.ts";
import {
  MAX_ROUNDS,
  makePassages,
  type Passages,
  type Round,
  type Search,
  toMessages,
  toNextRequest,
} from "./rounds.ts";

/** Searches of one turn at most; for any further one the model gets the request to call again. */
const MAX_SEARCHES = 4;
const MAX_QUERY = 2_000;
/** Characters before a mark in which its statement is. */
const MAX_STATEMENT = 600;

/** A chat, and what it may search. `rounds`: those of an earlier attempt, and where those of this one are kept. */
export type SearchedChat = {
  request: ChatRequest;
  fileSearch: FileSearch | undefined;
  rounds?: { past: readonly Round[]; keep(rounds: readonly Round[]): Promise<void> };
};

/** The same, planned. */
type PlannedResponse = SearchedChat & { caller: ChatCaller; chat: PlannedAnswer };

type Deps = {
  chat: Pick<Chat, "plan" | "answer" | "stream">;
  vectorStores: Pick<VectorStores, "search" | "requireOpen" | "filesOf">;
};
type Ask = (chat: PlannedAnswer) => AsyncIterable<ChatEvent[]>;

export type SearchingChat = ReturnType<typeof makeSearchingChat>;

/**
 * Chats of responses, in which the model may search vector stores. It is offered a function, whose calls are made here: so any
 * model searches, and no provider gets to know a store. Agents and patterns have tools of their own, and search nothing.
 */
export function makeSearchingChat(deps: Deps) {
  const { chat, vectorStores } = deps;
  const searches = ({ fileSearch, request }: SearchedChat) => fileSearch && !isRunModel(request.model) && fileSearch;
  return {
    /**
     * Refuses what the caller may not search, before anything of the response is kept.
     * @throws AppError `insufficient_scope` for a store that the key is not limited to; `not_found`; `wrong_state` for one that
     * has expired.
     */
    async check(caller: ChatCaller, asked: SearchedChat): Promise<void> {
      const fileSearch = searches(asked);
      if (!fileSearch) return;
      const param = `${fileSearch.place}.vector_store_ids`;
      try {
        chooseCollections(caller, [...fileSearch.names]);
        await vectorStores.requireOpen(caller, fileSearch.names);
      } catch (error) {
        throw error instanceof AppError ? new AppError(error.code, error.message, { param, cause: error }) : error;
      }
    },
    /** As `plan` of chats. */
    async plan(caller: ChatCaller, asked: SearchedChat): Promise<PlannedResponse> {
      return { ...asked, caller, chat: await chat.plan(caller, asked.request) };
    },
    /** As `answer` of chats; its steps are all that the response has. Throws the same, and as searches do. */
    async answer(planned: PlannedResponse): Promise<AnsweredResponse> {
      const fileSearch = searches(planned);
      const { tenantId } = planned.caller;
      if (!fileSearch) return annotate(vectorStores, tenantId, await chat.answer(planned.chat));
      const steps: ResponseDelta[] = [];
      let end: StreamEnd | undefined;
      const ask: Ask = async function* (turn) {
        yield toEvents(await chat.answer(turn));
      };
      for await (const batch of converse(deps, { ...planned, fileSearch, ask }))
        for (const event of batch) {
          if (event.type === "end") end = event;
          else steps.push(event);
        }
      if (!end) throw cut();
      const { type: _type, parts: _parts, ...outcome } = end;
      return { ...outcome, text: "", toolCalls: [], steps };
    },
    /** As `stream` of chats. Throws as `answer`. */
    stream(planned: PlannedResponse): AsyncIterable<ResponseStep[]> {
      const fileSearch = searches(planned);
      if (!fileSearch) {
        const events = chat.stream(planned.chat);
        return isRunModel(planned.request.model)
          ? annotateStream(vectorStores, planned.caller.tenantId, events)
          : events;
      }
      return converse(deps, { ...planned, fileSearch, ask: chat.stream });
    },
  };
}

const cut = () => new AppError("provider_failed", "The stream ended before the response did.", { retryable: true });

type Conversed = PlannedResponse & { fileSearch: FileSearch; ask: Ask };

/** The turns of a model, with the searches between them. All of them count as one answer. */
async function* converse({ chat, vectorStores }: Deps, given: Conversed): AsyncGenerator<ResponseStep[]> {
  const { request, caller, fileSearch, ask, rounds: log } = given;
  const passages = makePassages();
  const rounds: Round[] = [];
  const messages: ReturnType<typeof toMessages> = [];
  const add = (round: Round) => {
    rounds.push(round);
    messages.push(...toMessages(round, passages));
  };
  for (const round of log?.past ?? []) {
    add(round);
    yield [...round.said, ...round.searches.map(toCall), ...round.searches.map(toResult)];
  }
  for (;;) {
    const said: ResponseDelta[] = [];
    const turn = rounds.length === 0 ? given.chat : await chat.plan(caller, toNextRequest(request, rounds, messages));
    const end = yield* readTurn(ask(turn), { said, passages });
    const calls = end.toolCalls.filter(({ name }) => name === fileSearchName);
    // Functions of the client come first: the model asks for its search again once it has their outputs.
    const isOver = calls.length === 0 || calls.length < end.toolCalls.length || rounds.length >= MAX_ROUNDS;
    if (isOver) {
      const { text: _text, ...last } = end;
      yield [sumTurns(last, rounds)];
      return;
    }
    const asked = calls.map(({ id, arguments: json }) => ({ id, query: readQuery(json) }));
    yield asked.map(toCall);
    const search = (one: { id: string; query: string }, place: number) =>
      runSearch(vectorStores, { ...one, caller, fileSearch, model: request.model, isTooMany: place >= MAX_SEARCHES });
    const searches = await Promise.all(asked.map(search));
    const { usage, costUsd } = end;
    add({ said, turn: turnOf(end), searches, usage, costUsd });
    await log?.keep(rounds);
    yield searches.map(toResult);
  }
}

/** Says what a turn says, without its searches and the marks in its text; returns how it ends, and its text as it came. */
async function* readTurn(
  batches: AsyncIterable<ChatEvent[]>,
  { said, passages }: { said: ResponseDelta[]; passages: Passages },
): AsyncGenerator<ResponseDelta[], StreamEnd & { text: string }> {
  const citations = makeCitations(passages.find);
  const calls = new Set<number>();
  let text = "";
  let stated = "";
  const toCited = (parts: ReturnType<typeof citations.end>): ResponseDelta[] =>
    parts.map((part) => {
      if (part.type === "citation") return { ...part, of: passages.quote(part.of, lastSentence(stated)) };
      stated = `${stated}${part.text}`.slice(-MAX_STATEMENT);
      return { type: "text-delta", text: part.text };
    });
  for await (const batch of batches) {
    const shown: ResponseDelta[] = [];
    let end: StreamEnd | undefined;
    for (const event of batch) {
      if (event.type === "text-delta") {
        text += event.text;
        shown.push(...(passages.isEmpty() ? [event] : toCited(citations.take(event.text))));
        continue;
      }
      shown.push(...toCited(citations.end()));
      if (event.type === "tool-call-delta" && event.name === fileSearchName) calls.add(event.index);
      if (event.type === "end") end = event;
      else if (event.type !== "tool-call-delta" || !calls.has(event.index)) shown.push(event);
    }
    said.push(...shown);
    if (shown.length > 0 || batch.length === 0) yield shown;
    if (end) return { ...end, text };
  }
  throw cut();
}

const lastSentence = (text: string) =>
  text
    .trimEnd()
    .split(/(?<=[.!?])\s+|\n/)
    .at(-1) ?? "";

/** The turn as it goes back to the model that said it. */
function turnOf({ parts, text, toolCalls }: StreamEnd & { text: string }): AssistantPart[] {
  if (parts) return [...parts];
  const calls = toolCalls.map((call) => ({ type: "tool-call" as const, ...call }));
  return text === "" ? calls : [{ type: "text", text }, ...calls];
}

const toCall = ({ id, query }: Pick<Search, "id" | "query">): SearchDelta => {
  return { type: "search-call", id, queries: [query] };
};
const toResult = ({ id, searched, results, problem }: Search): SearchDelta => {
  const queries = searched === undefined ? {} : { queries: searched };
  return { type: "search-result", id, ...queries, results, hasFailed: problem !== undefined };
};

/** What a model asks for; some write it as it is, without the field. */
function readQuery(json: string): string {
  const parsed = tryParseJson(json);
  const query = typeof parsed === "object" && parsed !== null && "query" in parsed ? parsed.query : parsed;
  return (typeof query === "string" ? query : "").trim().slice(0, MAX_QUERY);
}

type Asked = { id: string; query: string; model: string; isTooMany: boolean } & Pick<
  Conversed,
  "caller" | "fileSearch"
>;

/** Makes a search. A store that has gone meanwhile is a failed search; what may pass ends the response. */
async function runSearch(vectorStores: Deps["vectorStores"], asked: Asked): Promise<Search> {
  const { id, query, caller, fileSearch, isTooMany } = asked;
  const failed = (problem: string): Search => ({ id, query, results: [], problem });
  if (isTooMany) return failed(`only ${MAX_SEARCHES} are made at once. Ask again.`);
  if (query === "") return failed("it has no query.");
  try {
    const { names, filters, limit, scoreThreshold, isRewritten } = fileSearch;
    const rewrite = isRewritten ? { model: asked.model } : undefined;
    const search = { names, queries: [query], filters, limit, scoreThreshold, rewrite };
    const { passages, searched } = await vectorStores.search(caller, search, caller.signal);
    return { id, query, searched, results: passages.map((passage) => toSearchResult(passage, query)) };
  } catch (error) {
    const isGone = error instanceof AppError && (error.code === "not_found" || error.code === "wrong_state");
    if (!isGone) throw error;
    return failed(error.message);
  }
}

function toSearchResult({ fileId, documentId, chunkId, ...found }: FoundPassage, query: string): SearchResult {
  const quote = findSentence(found.text, query)?.quote;
  const cited = { file_id: fileId, document_id: documentId, chunk_id: chunkId };
  return { ...found, ...cited, ...(quote === undefined ? {} : { quote }) };
}

/** A whole turn as the events that a stream would have had. */
function toEvents({ text, reasoning, steps: _steps, ...outcome }: AnsweredChat): ChatEvent[] {
  const deltas = toDeltas({ ...outcome, text, ...(reasoning === undefined ? {} : { reasoning }) });
  return [...deltas, { ...outcome, type: "end" }];
}

/** The end of a response of several turns: it used, and cost, what all of them did. */
function sumTurns(last: StreamEnd, earlier: readonly { usage: Usage; costUsd: number }[]): StreamEnd {
  const usage = earlier.reduce((sum, turn) => addUsage(sum, turn.usage), last.usage);
  const costUsd = earlier.reduce((sum, turn) => sum + turn.costUsd, last.costUsd);
  return { ...last, usage, costUsd, cached: last.cached && earlier.length === 0 };
}
