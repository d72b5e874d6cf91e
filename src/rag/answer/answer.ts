import { toWireUsage } from "../../gateway/chat/response.ts";
import type { StreamEvent } from "../../gateway/chat/stream.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { GatewayCaller } from "../../gateway/money/account.ts";
import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import type { Store } from "../../store/store.ts";
import type { Caller } from "../../tenancy/roles.ts";
import { type AnswerPassage, makeCiting } from "../cite.ts";
import type { RunQuery } from "../query.ts";
import type { QueryOutcome, QueryResult } from "../query-schemas.ts";
import { makeMarkReader } from "./marks.ts";
import { boundPassages, NOT_FOUND, toAnswerRequest } from "./prompt.ts";
import type { Answer, AnswerEvent, AnswerInput } from "./schemas.ts";

/** What an answer says if the documents hold none. */
export const NOTHING_FOUND = "The documents do not answer this question.";

type AnswerCaller = GatewayCaller & Pick<Caller, "collections">;
/** A question, of whose answer a caller may bound the tokens. */
type Asked = AnswerInput & { maxTokens?: number };
type AnswerDeps = {
  query: RunQuery;
  gateway: Pick<Gateway, "plan" | "answer" | "stream">;
  store: { documents: Pick<Store["documents"], "describe"> };
  /** Keeps an answer for those who rate it. */
  keep(caller: GatewayCaller, asked: Pick<AnswerInput, "query" | "history">, answer: Answer): Promise<void>;
};
type Planned = Awaited<ReturnType<Gateway["plan"]>>;
/** A search that was made, and the chat that answers from it; none, if it has found too little. */
type Prepared = { outcome: QueryOutcome; passages: AnswerPassage[]; searched: string[]; chat: Planned | undefined };

/** Answers questions from documents, with citations that hold. */
export function makeAnswering(deps: AnswerDeps) {
  const { gateway } = deps;
  return {
    /**
     * Searches, and has a model answer from the passages, unless they cover too little of the question.
     * @throws AppError as a query and as a chat do.
     */
    async answer(caller: AnswerCaller, input: Asked): Promise<Answer> {
      const prepared = await prepare(deps, caller, input);
      const ask = async function* (chat: Planned): AsyncGenerator<StreamEvent[]> {
        const { text, ...outcome } = await gateway.answer(chat);
        yield [
          { type: "text-delta", text },
          { ...outcome, type: "end" },
        ];
      };
      for await (const events of converse(prepared, ask)) {
        const end = events.find(isEnd);
        if (end === undefined) continue;
        await deps.keep(caller, input, toAnswer(end));
        return toAnswer(end);
      }
      throw streamCut();
    },
    /** The same, part by part. The search is made before the first part is there. Throws the same, also in the middle. */
    async *stream(caller: AnswerCaller, input: Asked): AsyncGenerator<AnswerEvent[]> {
      for await (const events of converse(await prepare(deps, caller, input), gateway.stream)) {
        const end = events.find(isEnd);
        if (end) await deps.keep(caller, input, toAnswer(end)); // it can be rated as soon as it is there
        yield events;
      }
    },
  };
}

type EndEvent = Answer & { done: true };
const isEnd = (event: AnswerEvent): event is EndEvent => event.done && "answer" in event;
const toAnswer = ({ done: _done, ...answer }: EndEvent): Answer => answer;
const streamCut = () => new AppError("provider_failed", "The stream ended before the answer did.", { retryable: true });

async function prepare(deps: AnswerDeps, caller: AnswerCaller, input: Asked): Promise<Prepared> {
  const { query, history = [], collection, documentIds, filter, topK, rerank, minCoverage, model } = input;
  const wish = input.rewrite === true ? {} : input.rewrite;
  const rewrite = wish && { model, history, ...wish };
  const where = defined({ collection, documentIds, filter, rewrite, rerank });
  const outcome = await deps.query(caller, { query, topK, mode: "hybrid", ...where });
  const isCovered = outcome.results.length > 0 && outcome.coverage >= minCoverage;
  const passages = isCovered ? boundPassages(await withUrls(deps, caller.tenantId, outcome.results)) : [];
  const request = toAnswerRequest({ query, history, passages, model, maxTokens: input.maxTokens });
  // A model that is not there is refused also where it would not be asked.
  const chat = await deps.gateway.plan(caller, request);
  return {
    outcome,
    passages,
    searched: [query, ...(outcome.rewrite?.queries ?? [])],
    chat: isCovered ? chat : undefined,
  };
}

/** The passages with the URLs of their documents. */
async function withUrls(
  { store }: AnswerDeps,
  tenantId: string,
  results: readonly QueryResult[],
): Promise<AnswerPassage[]> {
  const documents = await store.documents.describe(tenantId, [...new Set(results.map(({ documentId }) => documentId))]);
  return results.map((result) => ({ ...result, ...defined({ url: documents.get(result.documentId)?.source.url }) }));
}

async function* converse(
  { outcome, passages, searched, chat }: Prepared,
  ask: (chat: Planned) => AsyncIterable<StreamEvent[]>,
): AsyncGenerator<AnswerEvent[]> {
  const { coverage, rewrite, rerank, warnings } = outcome;
  const about = { coverage, ...defined({ rewrite, rerank, warnings }) };
  const searchUsd = (rewrite?.usd ?? 0) + (rerank?.usd ?? 0);
  const toEnd = (text: string, end: Omit<Answer, "answer" | "coverage" | "found">): AnswerEvent[] => [
    { citations: end.citations, done: false },
    { answer: text, found: end.citations.length > 0, ...about, ...end, done: true },
  ];
  if (!chat) {
    const usage = toWireUsage({ inputTokens: 0, outputTokens: 0 });
    yield [{ delta: { content: NOTHING_FOUND }, done: false }];
    yield toEnd(NOTHING_FOUND, { citations: [], model: null, usage, costUsd: searchUsd, logId: newId("log") });
    return;
  }
  const citing = makeCiting(passages, searched);
  const reader = makeMarkReader(citing.cite);
  const opening = makeOpening();
  let answer = "";
  const toDelta = (text: string): AnswerEvent[] => {
    answer += text;
    return text === "" ? [] : [{ delta: { content: text }, done: false }];
  };
  for await (const batch of ask(chat)) {
    if (batch.length === 0) yield []; // the head may go out
    for (const event of batch) {
      if (event.type === "text-delta") {
        const events = toDelta(reader.take(opening.take(event.text)));
        if (events.length > 0) yield events;
      }
      if (event.type !== "end") continue;
      const rest = toDelta(reader.take(opening.end()) + reader.end());
      const isNone = opening.isNotFound() || answer.trim() === "";
      if (isNone) rest.push(...toDelta(NOTHING_FOUND));
      else if (citing.citations().length === 0) citing.citeUnmarked(answer);
      const { model, usage, costUsd, logId, finishReason } = event;
      const end = { model, usage: toWireUsage(usage), costUsd: costUsd + searchUsd, logId, finishReason };
      yield [...rest, ...toEnd(answer.trim(), { citations: citing.citations(), ...end })];
      return;
    }
  }
  throw streamCut();
}

/** Holds back the beginning of a text until it is known whether the model says that it found nothing. */
function makeOpening() {
  let held: string | undefined = "";
  let isNone = false;
  return {
    take(text: string): string {
      if (held === undefined) return isNone ? "" : text;
      held += text;
      const begun = held.replace(/^[\s"'*`[(]+/, "");
      isNone = begun.startsWith(NOT_FOUND);
      if (!isNone && NOT_FOUND.startsWith(begun)) return "";
      const said = isNone ? "" : held;
      held = undefined;
      return said;
    },
    end(): string {
      const said = held ?? "";
      held = undefined;
      return said;
    },
    isNotFound: () => isNone,
  };
}
