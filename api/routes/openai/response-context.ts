import { z } from "zod";
import { defaultModelAlias } from "../../../src/gateway/providers/edge/models.ts";
import { invalidRequest } from "../../../src/lib/errors.ts";
import { newId } from "../../../src/lib/ids.ts";
import { secondsNow } from "../../../src/surfaces/chat-completions/openai.ts";
import { toCompacted, toSummaryRequest } from "../../../src/surfaces/responses/compaction.ts";
import { toOwnName } from "../../../src/surfaces/responses/field-names.ts";
import { fromResponsesBody } from "../../../src/surfaces/responses/request.ts";
import { responsesBodySchema } from "../../../src/surfaces/responses/request-schemas.ts";
import { toUsage } from "../../../src/surfaces/responses/response.ts";
import { responseUsageSchema } from "../../../src/surfaces/responses/response-schemas.ts";
import { shownItemSchema } from "../../../src/surfaces/responses/stored/views.ts";
import { declareRoutes } from "../../route.ts";
import { named } from "../../schema-names.ts";
import { modelCallErrors, toGatewayCaller } from "../chat.ts";
import { recallInput, withContents } from "./response-input.ts";

const { model, input, instructions, previous_response_id, conversation, prompt_cache_key } = responsesBodySchema.shape;
const said = { input: input.nullish(), instructions, previous_response_id, conversation };

const countBody = responsesBodySchema
  .pick({
    tools: true,
    tool_choice: true,
    text: true,
    reasoning: true,
    parallel_tool_calls: true,
    truncation: true,
  })
  .extend({ ...said, model: model.nullish() });
const compactBody = z.object({ ...said, model, prompt_cache_key });

const routes = declareRoutes({ auth: "member", tags: ["OpenAI-compatible"] });

export const responseContextRoutes = [
  routes.post("/v1/responses/input_tokens", {
    summary: "The tokens of a response's input, estimated",
    body: countBody,
    responses: {
      200: {
        description: "The count",
        body: z.object({ object: z.literal("response.input_tokens"), input_tokens: z.number().int().min(0) }),
      },
    },
    errors: [...modelCallErrors, "not_found"],
    example: { model: "meta-llm", input: "What does a lease protect a job from?" },
    async result({ body, ...given }) {
      const asked = { ...body, model: body.model ?? defaultModelAlias, input: body.input ?? [] };
      const call = await withContents({ ...given, body: asked });
      const { request, ignored } = fromResponsesBody(call.body, await recallInput(call));
      for (const name of ignored) given.ignore(name);
      const tokens = await given.platform.chat.countTokens(given.caller.tenantId, request);
      return { object: "response.input_tokens", input_tokens: tokens };
    },
  }),
  routes.post("/v1/responses/compact", {
    summary: "A shorter conversation in the place of a long one",
    description:
      "The model writes a summary. The output is what the user said, and one item `compaction`, which stands for the rest: send both " +
      "as the `input` of the next response, to any model. Nothing is stored.",
    body: named("CompactRequest", compactBody),
    responses: {
      200: {
        description: "What the conversation is replaced by",
        body: z.object({
          id: z.string(),
          object: z.literal("response.compaction"),
          created_at: z.number().int(),
          output: z.array(shownItemSchema),
          usage: responseUsageSchema,
          logId: z.string(),
          costUsd: z.number().min(0),
        }),
      },
    },
    errors: [...modelCallErrors, "not_found"],
    example: { model: "meta-llm", input: "What does a lease protect a job from?" },
    async result({ body, ...given }) {
      const { platform } = given;
      if (platform.chat.isRegulated(body.model))
        throw invalidRequest("model", "model: conversations of a regulated profile are not compacted.");
      const call = await withContents({ ...given, body: { ...body, input: body.input ?? [] } });
      const recalled = await recallInput(call);
      const { request, ignored, places } = fromResponsesBody(call.body, recalled);
      for (const name of ignored) given.ignore(toOwnName(name, places));
      const outcome = await platform.chat.complete(
        toGatewayCaller(call, "responses"),
        toSummaryRequest(body, request.messages),
      );
      const own =
        typeof recalled.input === "string" ? [{ role: "user" as const, content: recalled.input }] : recalled.input;
      return {
        id: newId("response"),
        object: "response.compaction",
        created_at: secondsNow(),
        output: toCompacted([...recalled.before, ...own], outcome),
        usage: toUsage(outcome.usage),
        logId: outcome.logId,
        costUsd: outcome.costUsd,
      };
    },
  }),
];
