import { AGENT } from "../../../src/gateway/run-model-names.ts";
import { AppError, invalidRequest } from "../../../src/lib/errors.ts";
import type { Resumed } from "../../../src/run-models/deps.ts";
import type { ResponsesBody } from "../../../src/surfaces/responses/request-schemas.ts";
import type { HandlerInput } from "../../route.ts";

type Input = Pick<HandlerInput<unknown, unknown, ResponsesBody>, "platform" | "caller" | "body">;
type Answer = { approvalId: string; decision: "approved" | "rejected"; comment?: string; param: string };

/**
 * Decides on the calls of an agent that the input answers for, as `mcp_approval_response`; returns the run that goes on. A request
 * that is sent again decides the same. Undefined for an input without such items.
 * @throws AppError `invalid_request`, `not_found`, `insufficient_role`; `wrong_state` for a call that was decided on otherwise.
 */
export async function decideByInput({ platform, caller, body }: Input): Promise<Resumed | undefined> {
  const answers = answersIn(body);
  const [first] = answers;
  if (!first) return undefined;
  if (!body.model.startsWith(AGENT))
    throw invalidRequest(first.param, `${first.param}: only a response of an agent asks for approvals.`);
  const asked = await Promise.all(answers.map(({ approvalId }) => platform.approvals.get(caller, approvalId)));
  const [jobId, other] = new Set(asked.map((approval) => approval.jobId));
  if (jobId === undefined || other !== undefined)
    throw invalidRequest(first.param, `${first.param}: decide on calls of one run of an agent at a time.`);
  const { subject } = await platform.jobs.get(caller.tenantId, jobId);
  const seen = (await platform.agents.entries(caller.tenantId, subject.runId ?? "")).length;
  for (const answer of answers) await decide({ platform, caller }, answer);
  return { jobId, seen };
}

function answersIn({ input }: ResponsesBody): Answer[] {
  if (typeof input === "string") return [];
  return input.flatMap((item, place) => {
    if (item.type !== "mcp_approval_response") return [];
    const { approval_request_id: approvalId, approve, reason } = item;
    const decision = approve ? "approved" : "rejected";
    return [{ approvalId, decision, ...(reason ? { comment: reason } : {}), param: `input[${place}]` }];
  });
}

async function decide(
  { platform, caller }: Pick<Input, "platform" | "caller">,
  { approvalId, param, ...decision }: Answer,
): Promise<void> {
  try {
    await platform.approvals.decide(caller, approvalId, decision);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === "wrong_state" && Object(error.details).status === decision.decision) return;
    throw new AppError(error.code, error.message, { param, details: error.details, cause: error });
  }
}
