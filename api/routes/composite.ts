import { z } from "zod";
import {
  compositeBodySchema,
  compositeResultSchema,
  executionViewSchema,
  patternSchema,
  profileSchema,
} from "../../src/composite/schemas.ts";
import { idSchema } from "../../src/lib/ids.ts";
import { listOf, wholeList, wholeListQuery } from "../list-query.ts";
import { acceptedSchema, serveJob, withCallback } from "../prefer.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";
import { modelCallErrors } from "./chat.ts";

const routes = declareRoutes({ auth: "member", tags: ["Composite intelligence"] });

export const compositeRoutes = [
  routes.post("/composite/execute", {
    summary: "Run a multi-model pattern under an industry profile",
    description:
      "An input that holds what a regulated profile must not let through is refused with 422, which names kinds and positions; nothing of it is kept. `models` replaces the profile's choice: the members in order, the first one also judges.",
    body: named("CompositeRequest", compositeBodySchema.extend(withCallback)),
    isAsync: true,
    // Before the idempotency record too: it holds a hash of the body, from which a short secret could be guessed.
    screen: ({ body, platform }) => platform.composite.guard(body),
    responses: {
      200: { description: "The pattern's answer", body: compositeResultSchema },
      202: { description: "The pattern is running", body: acceptedSchema },
    },
    errors: ["source_refused", ...modelCallErrors],
    example: {
      pattern: "consensus",
      profile: "coding",
      input: "Sessions live in memory. Two servers share no memory.\n\nWhy do users lose their sessions?",
    },
    handler(input) {
      const { body, caller, platform } = input;
      return serveJob(input, { accept: (job) => platform.composite.accept({ caller, body, ...job }) });
    },
  }),
  routes.get("/composite/patterns", {
    summary: "The patterns",
    query: wholeListQuery,
    responses: { 200: { description: "Every pattern", body: listOf(patternSchema) } },
    result: ({ platform }) => wholeList(platform.composite.patterns()),
  }),
  routes.get("/composite/profiles", {
    summary: "The industry profiles",
    query: wholeListQuery,
    responses: { 200: { description: "Every profile", body: listOf(profileSchema) } },
    result: ({ platform }) => wholeList(platform.composite.profiles()),
  }),
  routes.get("/composite/executions/:id", {
    summary: "A run with each of its model calls",
    params: z.object({ id: idSchema("execution") }),
    responses: { 200: { description: "The run", body: executionViewSchema } },
    result: ({ params: { id }, caller, platform }) => platform.composite.trace(caller, id),
  }),
];
