import { z } from "zod";
import type { Agents } from "../agents/agents.ts";
import { runBodySchema } from "../agents/schemas.ts";
import type { Composite } from "../composite/composite.ts";
import { compositeBodySchema } from "../composite/schemas.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { acceptReserved, type ReservedJob } from "../jobs/submit.ts";
import { AppError, invalidRequest } from "../lib/errors.ts";
import { idSchema } from "../lib/ids.ts";
import { toPlainWords, toSentence } from "../lib/issue-messages.ts";
import { collectionNameSchema } from "../rag/collections.ts";
import type { Rag } from "../rag/rag.ts";
import { ingestBodySchema } from "../rag/schemas.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import { type Caller, rootOf } from "../tenancy/roles.ts";
import type { Workflows } from "../workflows/workflows.ts";

const [ingestUrlSchema] = ingestBodySchema.options;
const kinds = ["agentId", "workflowId", "composite", "ingest", "refresh"] as const;

/** What a schedule or a trigger starts: exactly one of these. */
export const targetSchema = z
  .strictObject({
    agentId: idSchema("agent").optional().describe("Run an agent: `input` is a text, or a body of its runs"),
    workflowId: idSchema("workflow").optional().describe("Start a workflow: `input` is any JSON"),
    composite: z
      .strictObject(compositeBodySchema.omit({ input: true }).shape)
      .optional()
      .describe("Run a pattern of several models: `input` is a text"),
    ingest: z
      .strictObject(ingestUrlSchema.omit({ expiresAt: true, refreshEveryHours: true }).shape)
      .optional()
      .describe("Read a URL, as `POST /rag/ingest` does"),
    refresh: z
      .strictObject({ collection: collectionNameSchema })
      .optional()
      .describe("Read the URLs of a collection's documents again, if they have changed"),
  })
  .refine((target) => Object.values(target).filter((value) => value !== undefined).length === 1, {
    message: `must have exactly one of ${kinds.join(", ")}`,
  });
export type Target = z.output<typeof targetSchema>;

/** Something to start: for whom, and under which id of its job. */
type Start = { caller: Caller; target: Target; input: unknown; jobId: string };
/** What was started. A refresh of a collection has no job: it marks documents, each of which gets one of its own. */
export type Started = { documents?: number };

type StarterDeps = {
  agents: Pick<Agents, "accept" | "guard" | "get">;
  workflows: Pick<Workflows, "accept" | "get">;
  composite: Pick<Composite, "accept" | "guard">;
  rag: Pick<Rag, "accept" | "refreshCollection" | "requireCollections">;
  jobs: Pick<Jobs, "adopt" | "inTurn">;
  quotas: Pick<Quotas, "check">;
};

export type Starter = ReturnType<typeof makeStarter>;

/** Starts what routes start by a request, through the same functions, once under an id of a job. */
export function makeStarter(deps: StarterDeps) {
  const { agents, workflows, composite, rag, jobs } = deps;
  const accept = async ({ caller, target, input, jobId }: Start): Promise<{ job: JobRecord }> => {
    const as = { caller, jobId, isInteractive: false };
    const { agentId, workflowId, ingest } = target;
    if (agentId !== undefined) return agents.accept({ ...as, agentId, body: toRunBody(input) });
    if (workflowId !== undefined) return workflows.accept({ ...as, workflowId, body: toWorkflowBody(input) });
    if (target.composite) return composite.accept({ ...as, body: toCompositeBody(target.composite, input) });
    if (ingest) return rag.accept({ ...as, document: ingest });
    throw new TypeError("a target that nothing starts");
  };
  const requireThere = async (caller: Caller, { agentId, workflowId, refresh }: Target): Promise<void> => {
    const { tenantId } = caller;
    if (agentId !== undefined) await named("target.agentId", agents.get(tenantId, agentId));
    if (workflowId !== undefined) await named("target.workflowId", workflows.get(tenantId, workflowId));
    const param = "target.refresh.collection";
    if (refresh) await rag.requireCollections(caller, { wanted: refresh.collection, param });
  };
  return {
    /**
     * Whether a target can be started with this input, as far as that is known before.
     * @throws AppError `invalid_request`, `not_found` with the field's `param`; `compliance_blocked`; `insufficient_scope`.
     */
    async check(caller: Caller, target: Target, input: unknown): Promise<void> {
      const { agentId, ingest, refresh } = target;
      await requireThere(caller, target);
      if (ingest || refresh) {
        if (input !== undefined) throw invalidRequest("input", "input: reading documents takes none.");
        return;
      }
      if (agentId !== undefined)
        await named("target.agentId", agents.guard({ caller, agentId, body: toRunBody(input) }));
      if (target.composite) composite.guard(toCompositeBody(target.composite, input));
    },
    /** Whether what a target names is there. @throws AppError `not_found` with the field's `param`; `insufficient_scope`. */
    requireThere,
    /** Refuses an input that must not be kept. @throws AppError `compliance_blocked`. */
    screen(target: Target, input: unknown): void {
      const body = target.composite && compositeBodySchema.safeParse({ ...target.composite, input });
      if (body?.success) composite.guard(body.data);
    },
    /** Starts it, unless its job is there. @throws AppError as the route does. */
    async start(start: Start): Promise<Started> {
      const { caller, target, jobId } = start;
      const { tenantId } = caller;
      if (target.refresh) return { documents: await rag.refreshCollection(caller, target.refresh.collection) };
      const reserved: ReservedJob = { jobId, mayBeThere: true, state: "unused" };
      await jobs.inTurn(rootOf(caller), () => acceptReserved(deps, { tenantId, reserved }, () => accept(start)));
      return {};
    },
  };
}

/** The body of a run: a text is its input, and an object its body as a whole. */
const toRunBody = (input: unknown) =>
  parseAs(runBodySchema, typeof input === "object" && input !== null ? input : { input });
const toWorkflowBody = (input: unknown) => (input === undefined ? {} : { input });
const toCompositeBody = (composite: NonNullable<Target["composite"]>, input: unknown) =>
  parseAs(compositeBodySchema, { ...composite, input });

/** @throws AppError `invalid_request`, which names the input. */
function parseAs<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value, { error: toPlainWords });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const path = (issue?.path ?? []).map(String).filter((part, at) => at > 0 || part !== "input");
  const param = ["input", ...path].join(".");
  throw invalidRequest(param, toSentence(param, issue?.message ?? "is not valid"));
}

/** Says which field a failed check is about. */
async function named(param: string, check: Promise<unknown>): Promise<void> {
  try {
    await check;
  } catch (error) {
    if (!(error instanceof AppError) || error.param !== undefined) throw error;
    throw new AppError(error.code, error.message, { param, details: error.details, cause: error });
  }
}

/** A target and an input as their record keeps them: checked when they were stored. */
export const readTarget = (text: string): Target => JSON.parse(text);
export const readInput = (text: string | undefined): unknown => (text === undefined ? undefined : JSON.parse(text));
