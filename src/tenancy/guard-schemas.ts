import { z } from "zod";
import { type GuardKind, guardKinds } from "../guards/guard.ts";
import { guardActions, guardPlaces } from "../guards/rules.ts";
import { idSchema } from "../lib/ids.ts";

/** Exceptions of a policy, at most. */
const MAX_EXCEPTIONS = 50;

const action = z.enum(guardActions);
const actionsOfPlaces = z.strictObject(
  Object.fromEntries(guardPlaces.map((place) => [place, action.optional()])) as Record<
    (typeof guardPlaces)[number],
    z.ZodOptional<typeof action>
  >, // one entry a place
);
const rulesSchema = z
  .strictObject(
    Object.fromEntries(guardKinds.map((kind) => [kind, actionsOfPlaces.optional()])) as Record<
      GuardKind,
      z.ZodOptional<typeof actionsOfPlaces>
    >, // one entry a kind
  )
  .describe("What is done with values of a kind, by place. A kind or a place that is not named is `off`");

const exceptionSchema = z
  .strictObject({
    keyId: idSchema("apiKey").optional(),
    agentId: idSchema("agent").optional(),
    workflowId: idSchema("workflow").optional(),
    rules: rulesSchema,
  })
  .refine(
    ({ keyId, agentId, workflowId }) => [keyId, agentId, workflowId].filter((id) => id !== undefined).length === 1,
    {
      message: "must name one of keyId, agentId and workflowId",
    },
  );

/** What a tenant wants to be done with values of each kind. */
export const guardPolicySchema = z.strictObject({
  rules: rulesSchema.default({}),
  exceptions: z
    .array(exceptionSchema)
    .max(MAX_EXCEPTIONS)
    .default([])
    .describe("What holds for the calls of a key, an agent or a workflow, over `rules` and over earlier exceptions"),
  restore: z
    .boolean()
    .default(false)
    .describe(
      "Whether the values that were masked in a request are put back into its answer, unless the answer is kept",
    ),
  unreadable: z
    .enum(["refuse", "pass"])
    .default("refuse")
    .describe("What is done with pictures and files, which no guard reads, where a kind is blocked"),
});
export type GuardPolicy = z.output<typeof guardPolicySchema>;

export const noGuards: GuardPolicy = { rules: {}, exceptions: [], restore: false, unreadable: "refuse" };

/** Most characters of a text that is checked. */
const MAX_CHECKED = 100_000;

export const guardCheckBodySchema = z.strictObject({
  text: z.string().max(MAX_CHECKED),
  place: z.enum(guardPlaces).default("input"),
  policy: guardPolicySchema.optional().describe("Instead of the tenant's own"),
});

export const guardCheckSchema = z.object({
  action: action.describe("The strictest one that the text would meet"),
  text: z.string().optional().describe("What would go on; not of a text that is blocked"),
  findings: z
    .array(z.object({ kind: z.enum(guardKinds), action, start: z.number().int(), end: z.number().int() }))
    .describe("Positions in UTF-16 units"),
});
