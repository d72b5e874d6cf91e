import { z } from "zod";
import { feedbackBodySchema, feedbackFilterSchema, feedbackViewSchema } from "../../src/rag/answer/feedback.ts";
import { answerBodySchema, answerEventSchema, answerSchema } from "../../src/rag/answer/schemas.ts";
import { listOf, pageQuery } from "../list-query.ts";
import { declareRoutes, type SseMessage } from "../route.ts";
import { named } from "../schema-names.ts";
import { modelCallErrors, toGatewayCaller } from "./chat.ts";

const feedbackSchema = named("Feedback", feedbackViewSchema);
const routes = declareRoutes({ auth: "member", tags: ["Knowledge retrieval"] });

export const answerRoutes = [
  routes.post("/rag/answer", {
    summary: "Answer a question from your documents, with citations",
    description:
      "Searches as `/rag/query` does and has a model answer from the passages alone. Each citation has words of a passage that the " +
      "model got; one whose words are not in its passage is replaced by the sentence that fits, or left out. If the passages cover " +
      "less of the question than `minCoverage`, no model is asked, and `found` is false. With `stream: true` the response is " +
      "`text/event-stream`: deltas, then the citations, then the whole answer with `done: true`.",
    body: named("AnswerRequest", answerBodySchema),
    headers: { "x-svc-surface": "Tags the source of the request for analytics, as on `/ai/chat`" },
    responses: {
      200: {
        description: "The answer; `found` says whether the documents hold one",
        body: named("Answer", answerSchema),
        events: named("AnswerEvent", answerEventSchema),
      },
    },
    errors: [...modelCallErrors, "not_found"],
    example: { query: "When is the pump bled?", topK: 5 },
    async handler(input) {
      const { body, platform } = input;
      const caller = toGatewayCaller(input, "rag");
      const { answering } = platform.rag;
      if (body.stream) return { status: 200, events: toSse(answering.stream(caller, body)) };
      return { status: 200, body: await answering.answer(caller, body) };
    },
  }),
  routes.post("/rag/feedback", {
    summary: "Rate an answer of `/rag/answer`",
    description:
      "Within seven days, by its `logId`; a second rating replaces the first. Rated answers are kept as call logs are.",
    body: named("FeedbackRequest", feedbackBodySchema),
    responses: { 200: { description: "It is rated", body: feedbackSchema } },
    errors: ["not_found", "quota_exceeded", "compliance_blocked"],
    example: { logId: "log_01M80BTHEJM7DXG2ZSCEE6VGBY", thumb: "up", comment: "Short and right." },
    result: ({ body, caller, platform }) => platform.rag.feedback.rate(caller, body),
  }),
  routes.get("/rag/feedback", {
    summary: "Rated answers, newest first",
    description: "A key that is limited to collections sees those that it asked for itself.",
    query: pageQuery("log").extend(feedbackFilterSchema.shape),
    responses: { 200: { description: "A page of rated answers", body: listOf(feedbackSchema) } },
    result: ({ query, caller, platform }) => platform.rag.feedback.list(caller, query),
  }),
  routes.get("/rag/feedback/export", {
    summary: "Answers that were rated as right, as a file for `npm run retrieval-check`",
    description:
      "The newest 10,000, each a line `{ question, documentId, contains, also?, answer }`; without texts there is none.",
    query: z.strictObject({}),
    responses: { 200: { description: "JSON lines", contentType: "application/x-jsonl", body: z.string() } },
    handler: ({ caller, platform }) => ({
      status: 200,
      headers: { "content-type": "application/x-jsonl" },
      bytes: toBytes(platform.rag.feedback.export(caller)),
    }),
  }),
];

async function* toBytes(lines: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  for await (const line of lines) yield Buffer.from(line);
}

async function* toSse(events: AsyncIterable<unknown[]>): AsyncGenerator<SseMessage[]> {
  for await (const batch of events) yield batch.map((data) => ({ data }));
}
