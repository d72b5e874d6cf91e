import { z } from "zod";
import { defined, toView } from "../../lib/defined.ts";
import { notFound } from "../../lib/errors.ts";
import { idSchema } from "../../lib/ids.ts";
import type { Logger } from "../../observe/logger.ts";
import type { AnswerRecord } from "../../store/answer-store.ts";
import { mapPage, type PageQuery } from "../../store/page.ts";
import type { Store } from "../../store/store.ts";
import type { CallTexts } from "../../tenancy/call-texts.ts";
import type { Quotas } from "../../tenancy/quotas.ts";
import { type Caller, maySee, ownKeyOf } from "../../tenancy/roles.ts";
import type { Answer } from "./schemas.ts";

/** How long an answer can be rated, in days. */
const RATED_WITHIN_DAYS = 7;
const DAY_MS = 86_400_000;
const MAX_COMMENT = 2_000;
const MAX_QUESTION = 8_192;
/** Rated answers that one export reads. */
const EXPORTED = 10_000;
const PAGE = 200;

const thumb = z.enum(["up", "down"]);
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

type FeedbackDeps = {
  store: Pick<Store, "answers">;
  callTexts: Pick<CallTexts, "areKept">;
  quotas: Pick<Quotas, "check">;
  logger: Logger;
  /** How long rated answers are kept, in days; 0: for ever. */
  days: number;
};

/** Ratings of answers, which are kept for them for a week. */
export function makeFeedback({ store, callTexts, quotas, logger, days }: FeedbackDeps) {
  const inDays = (count: number) => new Date(Date.now() + count * DAY_MS);
  const list = (caller: Caller, page: PageQuery & { thumb?: "up" | "down" | undefined }) =>
    store.answers.listRated(caller.tenantId, { ...page, ...defined({ thumb: page.thumb, keyId: ownKeyOf(caller) }) });
  return {
    /** Keeps an answer, so that it can be rated; its texts only if the tenant keeps texts of calls. */
    async keep(
      { tenantId, keyId }: Pick<Caller, "tenantId" | "keyId">,
      question: string,
      given: Answer,
    ): Promise<void> {
      try {
        const hasTexts = await callTexts.areKept(tenantId);
        const { logId: _id, answer, citations, found, coverage, model } = given;
        const cited = citations.map(({ documentId, chunkId, title, quote }) =>
          hasTexts ? { documentId, chunkId, title, quote } : { documentId, chunkId },
        );
        const about = { citations: cited, found, coverage, model, createdAt: new Date() };
        const texts = hasTexts ? { question, answer } : {};
        await store.answers.insert({ _id, tenantId, keyId, ...texts, ...about, expireAt: inDays(RATED_WITHIN_DAYS) });
      } catch (error) {
        logger.warn({ err: error, tenantId }, "an answer cannot be rated: it was not kept"); // it is given all the same
      }
    },
    /** Rates an answer, or changes its rating. @throws AppError `not_found`, `quota_exceeded`. */
    async rate(caller: Caller, { logId, ...given }: z.output<typeof feedbackBodySchema>) {
      const { tenantId, subject: ratedBy } = caller;
      const known = await store.answers.get(tenantId, logId);
      if (!known || !maySee(caller, known.keyId)) throw notFound("answer");
      if (known.thumb === undefined) await quotas.check(tenantId, "feedback");
      const { thumb, comment, question = known.question } = given;
      const expireAt = days === 0 ? undefined : inDays(days);
      const rating = { thumb, ratedBy, ratedAt: new Date(), ...defined({ comment, question, expireAt }) };
      const rated = await store.answers.rate(tenantId, logId, rating);
      if (!rated) throw notFound("answer");
      return toFeedback(rated);
    },
    /** The newest first; of a key that is limited to collections, its own. */
    list: async (...[caller, page]: Parameters<typeof list>) => mapPage(await list(caller, page), toFeedback),
    /** Answers that were rated as right, as lines of a file for `npm run retrieval-check`. */
    async *export(caller: Caller): AsyncGenerator<string> {
      let cursor: string | undefined;
      for (let read = 0; read < EXPORTED; read += PAGE) {
        const { data, nextCursor } = await list(caller, { limit: PAGE, cursor, thumb: "up" });
        for (const { question, answer, citations, found } of data) {
          if (question === undefined) continue;
          const [first, ...others] = citations.map(({ documentId, quote: contains }) =>
            defined({ documentId, contains }),
          );
          const also = others.length > 0 ? others : undefined;
          const line = defined({ question, ...first, also, answer: found ? answer : undefined });
          yield `${JSON.stringify(line)}\n`;
        }
        if (nextCursor === null) return;
        cursor = nextCursor;
      }
    },
  };
}

function toFeedback({ _id: logId, tenantId: _tenant, keyId: _key, expireAt: _end, ...rest }: AnswerRecord) {
  const { thumb = "down", ratedBy = "", ratedAt = rest.createdAt } = rest; // of a rated answer they are there
  return toView({ logId, ...rest, thumb, ratedBy, ratedAt });
}
