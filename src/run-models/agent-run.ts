import { type RunInput, type RunResult, runBodySchema } from "../agents/schemas.ts";
import type { ChatRequest } from "../gateway/chat/request.ts";
import type { ChatDelta } from "../gateway/chat/steps.ts";
import { AGENT } from "../gateway/run-model-names.ts";
import { AppError, renameField } from "../lib/errors.ts";
import { idSchema } from "../lib/ids.ts";
import { placeCitations } from "../rag/cite.ts";
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
  const { visitor } = caller;
  type Asked = { caller: ChatCaller; agentId: string; body: RunInput; visitor: ChatCaller["visitor"] };
  const server = model.slice(AGENT.length);
  const tools = caller.endsAtApproval ? ((await deps.agents.definitionOf(tenantId, agentId))?.tools ?? []) : [];
  const isCallShownLate = tools.some(({ approval }) => approval);
  const withRun = async <T>(work: (run: Asked) => Promise<T>) => {
    const { input, history } = conversation;
    const turns = history.map(({ role, content }) => ({ role, content }));
    const said = { input: input.content, ...(turns.length === 0 ? {} : { history: turns }) };
    try {
      if (conversation.media) refuseMedia(conversation, "an agent", await deps.agents.regulatedBy(tenantId, agentId));
      return await work({ caller, agentId, body: parseRun(runBodySchema, said), visitor });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      throw error.code === "not_found"
        ? unknownAgent(model)
        : renameField(error, (name) => fieldIn(conversation, name));
    }
  };
  return {
    check: () => withRun(deps.agents.guard),
    accept: (jobId) => withRun((run) => deps.agents.accept({ ...run, isInteractive: true, jobId })),
    makeNews({ subject: { runId = "" } }) {
      let seen = 0;
      const shownFrom = caller.resumes?.seen ?? 0;
      const toDeltas = makeDeltas({ server, isCallShownLate });
      return async ({ type, data }) => {
        if (type === "progress" || (type === "step" && Object(data).runId !== runId)) return []; // of an agent that it called
        const entries = await deps.agents.entries(tenantId, runId, seen);
        seen += entries.length;
        return entries.flatMap(({ seq, content }) => {
          const deltas = toDeltas(content);
          return seq < shownFrom ? [] : deltas;
        });
      };
    },
    async toPause({ subject: { runId = "" } }) {
      const { asked, spent } = await deps.agents.askedBy(tenantId, runId);
      const asks = asked.map((call) => ({ type: "step-approval" as const, server, ...call }));
      return { asks, answer: { id: runId, text: "", finishReason: "stop", spent } };
    },
    toAnswer(result) {
      const { runId: id, output: text, status, stopReason, ...rest } = result as RunResult; // of our own job
      const { tokensUsed: tokens, outputTokens, costUsd, citations } = rest;
      const stopped = stopReason === "content_filter" ? stopReason : "length";
      return {
        id,
        text,
        finishReason: status === "completed" ? "stop" : stopped,
        spent: { tokens, outputTokens, costUsd },
        ...(citations && { citations: placeCitations(text, citations) }),
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

const unknownAgent = (model: string) =>
  unknownRunModel(model, "GET /agents lists yours: name one as agent:<agentId>, or by its name.");

type ShownCall = Extract<ChatDelta, { type: "step-call" }>;

/**
 * What the entries of an audit log show of its steps, one after the other. The answer itself comes with the result. A call is
 * shown when it begins; `isCallShownLate`: when it has ended, since it may first have to be approved, for another answer.
 */
function makeDeltas({ server, isCallShownLate }: { server: string; isCallShownLate: boolean }) {
  const calls = new Map<string, ShownCall>();
  return (content: AuditContent): ChatDelta[] => {
    if (content.kind === "intention") {
      const { thought } = content;
      const begun = content.calls.map(({ id, name, arguments: json }): ShownCall => {
        return { type: "step-call", id, server, name, arguments: json };
      });
      for (const call of begun) calls.set(call.id, call);
      const reasoning = thought === "" ? [] : [{ type: "reasoning-delta" as const, text: `${thought}\n` }];
      return isCallShownLate ? reasoning : [...reasoning, ...begun];
    }
    if (content.kind === "asked") {
      const call = calls.get(content.callId);
      if (call) calls.set(call.id, { ...call, approvalId: content.approvalId });
    }
    if (content.kind !== "observation") return [];
    const { callId: id, output, isError } = content;
    const call = isCallShownLate ? calls.get(id) : undefined;
    return [...(call ? [call] : []), { type: "step-result", id, output, isError }];
  };
}
