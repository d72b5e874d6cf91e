import { z } from "zod";
import type { ApprovalView } from "../../src/approvals/schemas.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import { parseInput } from "../middleware/validate.ts";
import type { HandlerInput } from "../route.ts";

/** The decision that a job's run awaits, as a question to the client's person. */
export type Question = {
  approvalId: string;
  request: { method: "elicitation/create"; params: Record<string, unknown> };
};

/** Longest message of a question, in characters; the page of the approval shows all of it. */
const MAX_MESSAGE = 4_000;

/** What a client returns to a question (`ElicitResult`). Whoever declines or cancels leaves the decision to others. */
const answerSchema = z.looseObject({
  action: z.enum(["accept", "decline", "cancel"]),
  content: z.looseObject({ confirm: z.boolean(), comment: z.string().max(4_000).optional() }).optional(),
});

type Input = Pick<HandlerInput, "platform" | "caller">;

/** The question that a job awaits the answer to, which the caller may give; null when there is none. */
export async function questionOf(
  { platform, caller }: Input,
  { status, payload }: JobRecord,
): Promise<Question | null> {
  if (status !== "awaiting" || typeof payload.runId !== "string") return null;
  const awaited = (await platform.approvals.awaited(caller, payload.runId)).find(({ mayDecide }) => mayDecide);
  if (!awaited) return null;
  return { approvalId: awaited.approvalId, request: { method: "elicitation/create", params: toForm(awaited) } };
}

/** What a person is asked: of a step its message; of a tool call what would be called, and with which arguments. */
function toText({ kind, workflowName, agentName, toolName, message, arguments: args }: ApprovalView): string {
  if (kind === "workflow") return message ?? `The workflow ${workflowName} awaits your decision.`;
  const call = `The agent ${agentName} is about to call ${toolName} with ${JSON.stringify(args)}`;
  return message === undefined ? call : `${message}\n\n${call}`;
}

function toForm(approval: ApprovalView) {
  const text = toText(approval);
  return {
    mode: "form",
    message: text.slice(0, MAX_MESSAGE).toWellFormed(),
    requestedSchema: {
      type: "object",
      properties: {
        confirm: {
          type: "boolean",
          title: "Approve",
          description:
            approval.kind === "workflow"
              ? "Whether the run goes on; otherwise it ends as rejected"
              : "Whether the call is made; otherwise the agent reads that it was rejected",
        },
        comment: { type: "string", title: "Comment", maxLength: 4_000 },
      },
      required: ["confirm"],
    },
  };
}

/**
 * Decides an approval by what a client returned to its question.
 * @throws AppError `invalid_request` for an answer that is none, and as `decide` of the workflows.
 */
export async function decideBy({ platform, caller }: Input, approvalId: string, answer: unknown): Promise<void> {
  const { action, content } = parseInput(answerSchema, answer, "arguments") as z.output<typeof answerSchema>;
  if (action !== "accept" || content === undefined) return;
  const { confirm, comment } = content;
  const decision = confirm ? "approved" : "rejected";
  await platform.approvals.decide(caller, approvalId, { decision, ...(comment !== undefined && { comment }) });
}
