import { type RunInput, type RunResult, runBodySchema } from "../agents/schemas.ts";
import type { ChatRequest } from "../gateway/chat/request.ts";
import type { ChatDelta } from "../gateway/chat/steps.ts";
import { AGENT } from "../gateway/run-model-names.ts";
import { AppError, renameField } from "../lib/errors.ts";
import { idSchema } from "../lib/ids.ts";
import type { AuditContent } from "../store/audit-store.ts";
import { fieldIn, parseRun, refuseMedia, toConversation } from "./conversation.ts";
import type { ChatCaller, PreparedRun, RunModelsDeps } from "./deps.ts";
import { unknownRunModel } from "./names.ts";

const agentIdSchema = idSchema("agent");

/** The run of an agent that answers a chat with it. @throws AppError `unknown_model`, `invalid_request`, `compliance_blocked`. */
export async function prepareAgentRun(
  deps: RunModelsDeps,
  caller: ChatCaller,
  request: ChatRequest,
): Promise<PreparedRun> {
  const { tenantId } = caller;
  const { model } = request;
  const agentId = await findAgent(deps, tenantId, model);
  const conversation = toConversation(request);
  const withRun = async <T>(work: (run: { caller: ChatCaller; agentId: string; body: RunInput }) => Promise<T>) => {
    const { input, history } = conversation;
    const turns = history.map(({ role, content }) => ({ role, content }));
    const said = { input: input.content, ...(turns.length === 0 ? {} : { history: turns }) };
    try {
      if (conversation.media) refuseMedia(conversation, "an agent", await deps.agents.regulatedBy(tenantId, agentId));
      return await work({ caller, agentId, body: parseRun(runBodySchema, said) });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      throw error.code === "not_found"
        ? unknownAgent(model)
        : renameField(error, (name) => fieldIn(conversation, name));
    }
  };
  return {
    check: () => withRun(deps.agents.guard),
    accept: (jobId) => withRun((run) => deps.agents.accept({ ...run, isInteractive: true, ...(jobId && { jobId }) })),
    makeNews({ subject: { runId = "" } }) {
      let seen = 0;
      const server = model.slice(AGENT.length);
      return async ({ type, data }) => {
        if (type === "progress" || (type === "step" && Object(data).runId !== runId)) return []; // of an agent that it called
        const entries = await deps.agents.entries(tenantId, runId, seen);
        seen += entries.length;
        return entries.flatMap(({ content }) => toDeltas(content, server));
      };
    },
    toAnswer(result) {
      const { runId: id, output: text, status, stopReason, ...rest } = result as RunResult; // of our own job
      const { tokensUsed: tokens, outputTokens, costUsd } = rest;
      const stopped = stopReason === "content_filter" ? stopReason : "length";
      return {
        id,
        text,
        finishReason: status === "completed" ? "stop" : stopped,
        spent: { tokens, outputTokens, costUsd },
      };
    },
  };
}

/** @throws AppError `unknown_model`; `invalid_request` for a name that several agents have. */
export async function findAgent({ agents }: RunModelsDeps, tenantId: string, model: string): Promise<string> {
  const named = model.slice(AGENT.length);
  if (agentIdSchema.safeParse(named).success) return named;
  try {
    return await agents.idOf(tenantId, named);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw error.code === "not_found" ? unknownAgent(model) : renameField(error, () => "model");
  }
}

export const unknownAgent = (model: string) =>
  unknownRunModel(model, "GET /agents lists yours: name one as agent:<agentId>, or by its name.");

/** What an entry of the audit log shows of a step. The answer itself comes with the result. */
function toDeltas(content: AuditContent, server: string): ChatDelta[] {
  if (content.kind === "intention") {
    const { thought, calls } = content;
    const shown = calls.map(({ id, name, arguments: json }) => {
      return { type: "step-call" as const, id, server, name, arguments: json };
    });
    return [...(thought === "" ? [] : [{ type: "reasoning-delta" as const, text: `${thought}\n` }]), ...shown];
  }
  if (content.kind !== "observation") return [];
  const { callId: id, output, isError } = content;
  return [{ type: "step-result", id, output, isError }];
}
