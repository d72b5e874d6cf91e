import { answerBodySchema, answerEventSchema, answerSchema } from "../../src/rag/answer/schemas.ts";
import { declareRoutes, type SseMessage } from "../route.ts";
import { named } from "../schema-names.ts";
import { modelCallErrors, toGatewayCaller } from "./chat.ts";

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
];

async function* toSse(events: AsyncIterable<unknown[]>): AsyncGenerator<SseMessage[]> {
  for await (const batch of events) yield batch.map((data) => ({ data }));
}
