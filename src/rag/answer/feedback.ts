import { z } from "zod";
import type { GatewayCaller } from "../../gateway/money/account.ts";
import { defined, toView } from "../../lib/defined.ts";
import { notFound } from "../../lib/errors.ts";
import { idSchema } from "../../lib/ids.ts";
import type { Logger } from "../../observe/logger.ts";
import type { AnswerRecord } from "../../store/answer-store.ts";
import { mapPage, type PageQuery } from "../../store/page.ts";
import type { Store } from "../../store/store.ts";
import type { CallTexts } from "../../tenancy/call-texts.ts";
import { type GuardPolicies, takeBy } from "../../tenancy/guard-policies.ts";
import type { Quotas } from "../../tenancy/quotas.ts";
import { type Caller, maySee, ownKeyOf } from "../../tenancy/roles.ts";
import { historySchema } from "../query-schemas.ts";
import { boundHistory } from "./prompt.ts";
import type { Answer, AnswerInput } from "./schemas.ts";

/** How long an answer can be rated, in days. */
const RATED_WITHIN_DAYS = 7;
const DAY_MS = 86_400_000;
const MAX_COMMENT = 2_000;
const MAX_QUESTION = 8_192;
/** What is kept of a conversation before a question, in characters: its end. */
const MAX_HISTORY = 2_000;
/** Answers without a rating that a tenant has at most, about; the oldest are removed once in so many answers. */
const MAX_UNRATED = 5_000;
const ROUND = 100;
/** Rated answers that one export reads. */
const EXPORTED = 10_000;
const PAGE = 200;

const thumb = z.enum(["up", "down"]);
/** Which rated answers are listed. */
export const feedbackFilterSchema = z.object({
  thumb: thumb.optional(),
  found: z
    .stringbool({ truthy: ["true"], falsy: ["false"] })
    .optional()
    .describe("Whether the documents held an answer"),
  model: z.string().min(1).max(200).optional().describe("The model that answered"),
});
/** The body of `POST /rag/feedback`. */
export const feedbackBodySchema = z.object({
  logId: idSchema("log"),
  thumb: thumb.describe("Whether the answer was right and useful"),
  comment: z.string().trim().min(1).max(MAX_COMMENT).optional(),
  question: z
    .string()
    .trim()
    .min(1)
    .max(MAX_QUESTION)
    .optional()
    .describe("What was asked, to be kept with the rating where your tenant keeps no texts of calls"),
});
export const feedbackViewSchema = z.object({
  logId: idSchema("log"),
  thumb,
  comment: z.string().optional(),
  question: z.string().optional(),
  history: historySchema.optional(),
  answer: z.string().optional(),
  citations: z.array(
    z.object({
      documentId: idSchema("document"),
      chunkId: z.string(),
      title: z.string().optional(),
      quote: z.string().optional(),
    }),
  ),
  found: z.boolean(),
  coverage: z.number(),
  model: z.string().nullable(),
  ratedBy: z.string(),
  ratedAt: z.iso.datetime(),
  createdAt: z.iso.datetime(),
});

/** Whose answer it is, as guards name it. */
type Owner = Pick<GatewayCaller, "tenantId" | "keyId">;
type FeedbackDeps = {
  store: Pick<Store, "answers">;
  callTexts: Pick<CallTexts, "areKept">;
  guards: Pick<GuardPolicies, "forCall">;
  quotas: Pick<Quotas, "check">;
  logger: Logger;
  /** How long rated answers are kept, in days; 0: for ever. */
  days: number;
};
type Asked = Pick<AnswerInput, "query" | "history">;
type ListQuery = PageQuery & z.output<typeof feedbackFilterSchema>;

/** Ratings of answers. Each answer is kept for a week, so that it can be rated. */
export function makeFeedback({ store, callTexts, guards, quotas, logger, days }: FeedbackDeps) {
  const inDays = (count: number) => new Date(Date.now() + count * DAY_MS);
  const list = (caller: Caller, { limit, cursor, ...filter }: ListQuery) =>
    store.answers.listRated(caller.tenantId, { limit, cursor, ...filter, keyId: ownKeyOf(caller) });
  /** What is kept of an answer: its texts as the call logs would have them, and only if the tenant keeps texts of calls. */
  const toKept = async (caller: Owner, asked: Asked, { answer, citations, found, coverage, model }: Answer) => {
    const about = { found, coverage, model };
    if (!(await callTexts.areKept(caller.tenantId)))
      return { ...about, citations: citations.map(({ documentId, chunkId }) => ({ documentId, chunkId })) };
    const guard = await guards.forCall(caller);
    const cited = citations.map(({ documentId, chunkId, title, quote }) => ({
      documentId,
      chunkId,
      title: guard?.toLogged(title, "output") ?? title,
      quote: guard?.toLogged(quote, "output") ?? quote,
    }));
    const hidden = (text: string) => guard?.toLogged(text, "input") ?? text;
    const history = boundHistory(asked.history ?? [], MAX_HISTORY).map(({ role, content }) => ({
      role,
      content: hidden(content),
    }));
    const texts = { question: hidden(asked.query), answer: guard?.toLogged(answer, "output") ?? answer };
    return { ...about, ...texts, ...(history.length > 0 ? { history } : {}), citations: cited };
  };
  return {
    /** Keeps an answer, so that it can be rated. An answer that cannot be kept is given all the same. */
    async keep(caller: Owner, asked: Asked, given: Answer): Promise<void> {
      const { tenantId, keyId } = caller;
      try {
        const kept = await toKept(caller, asked, given);
        const times = { createdAt: new Date(), expireAt: inDays(RATED_WITHIN_DAYS) };
        await store.answers.insert({ _id: given.logId, tenantId, keyId, ...kept, ...times });
        if (Math.random() < 1 / ROUND) await store.answers.removeUnrated(tenantId, MAX_UNRATED);
      } catch (error) {
        logger.warn({ err: error, tenantId }, "an answer cannot be rated: it was not kept");
      }
    },
    /** Rates an answer, or changes its rating. @throws AppError `not_found`, `quota_exceeded`, `compliance_blocked`. */
    async rate(caller: Caller, { logId, thumb, ...texts }: z.output<typeof feedbackBodySchema>) {
      const { tenantId, keyId, subject: ratedBy } = caller;
      const known = await store.answers.get(tenantId, logId);
      if (!known || !maySee(caller, known.keyId)) throw notFound("answer");
      if (known.thumb === undefined) await quotas.check(tenantId, "feedback");
      const guard = await guards.forCall({ tenantId, keyId });
      const { comment, question = known.question } = guard ? await takeBy(guard, "input", texts) : texts;
      const expireAt = days === 0 ? undefined : inDays(days);
      const rating = { thumb, ratedBy, ratedAt: new Date(), ...defined({ comment, question, expireAt }) };
      const rated = await store.answers.rate(tenantId, logId, rating);
      if (!rated) throw notFound("answer");
      return toFeedback(rated);
    },
    /** The newest first; of a key that is limited to collections, its own. */
    list: async (caller: Caller, query: ListQuery) => mapPage(await list(caller, query), toFeedback),
    /** Answers that were rated as right, as lines of a file for `npm run retrieval-check`. */
    async *export(caller: Caller): AsyncGenerator<string> {
      let cursor: string | undefined;
      for (let read = 0; read < EXPORTED; read += PAGE) {
        const { data, nextCursor } = await list(caller, { limit: PAGE, cursor, thumb: "up" });
        for (const record of data) yield* toLine(record);
        if (nextCursor === null) return;
        cursor = nextCursor;
      }
    },
  };
}

/** A question with the places that answer it; one that was rightly not answered has none. */
function* toLine({ question, history, answer, citations, found }: AnswerRecord): Generator<string> {
  if (question === undefined) return;
  const places = citations.map(({ documentId, quote: contains }) => defined({ documentId, contains }));
  const [first, ...also] = places;
  const more = defined({ also: also.length > 0 ? also : undefined, history, answer: found ? answer : undefined });
  yield `${JSON.stringify({ question, ...first, ...more })}\n`;
}

function toFeedback({ _id: logId, tenantId: _tenant, keyId: _key, expireAt: _end, ...rest }: AnswerRecord) {
  const { thumb = "down", ratedBy = "", ratedAt = rest.createdAt } = rest; // of a rated answer they are there
  return toView({ logId, ...rest, thumb, ratedBy, ratedAt });
}
