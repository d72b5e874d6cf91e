import { defined } from "../../lib/defined.ts";
import { AppError, type ErrorView, toErrorView, withoutText } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import { currentRequestId } from "../../net/call-scope.ts";
import type { CallOrigin, CompletionRecord } from "../../store/completion-store.ts";
import type { PolicyGuard } from "../../tenancy/guard-policies.ts";
import type { Routing } from "../chat/route-model.ts";
import type { GatewayDeps } from "../deps.ts";
import type { CompletionRequest, FinishReason, Usage } from "../providers/provider.ts";
import { withoutZeros } from "../providers/usage.ts";
import type { Preprocessing } from "../schemas.ts";
import type { Budgets } from "./budget.ts";
import type { Ledger } from "./ledger.ts";
import { addUsage, type CostBounds, makeFailedAttempts, plausible, toNanoUsd, toUsd } from "./prices.ts";
import type { RunBudgets, RunReservation } from "./run-budgets.ts";
import { endUserOf } from "./usage-increments.ts";

/** Who makes a call: the tenant and key that are billed, and the surface of the call. */
export type GatewayCaller = {
  tenantId: string;
  keyId: string;
  /** What the key may spend in a month, beside the budget of its tenant. */
  keyBudgetUsd?: number | undefined;
  surface: string;
  signal: AbortSignal;
  /** The end user of the call, as the tenant names them. */
  endUser?: string | undefined;
  /** The conversation that its calls are parts of, for traces. */
  conversationId?: string | undefined;
  /** What it is made for. */
  origin?: CallOrigin;
  /** Set for a run that erases its texts at its end. No record keeps texts of its calls. */
  isErased?: boolean;
  /** Of a run that makes several calls. */
  limit?: CallLimit;
  /** Called before the first part of an answer, for each setting that a fallback does not take as requested. */
  onIgnored?(name: string): void;
  /** Guards the texts of the call; set as soon as it is planned. */
  guard?: PolicyGuard | undefined;
  /** Whether nothing of the answer is kept, so that values that were masked may stand in it. */
  mayRestore?: boolean | undefined;
};

/** What the record of a call says of its guard. */
function guardOf({ found }: PolicyGuard): Pick<CompletionRecord, "guard"> {
  const counts = found();
  return counts.length === 0 ? {} : { guard: counts };
}

/** The caller, and whom a request says that it is made for. */
export function withEndUser(caller: GatewayCaller, request: Parameters<typeof endUserOf>[0]): GatewayCaller {
  const endUser = endUserOf(request);
  return endUser === undefined ? caller : { ...caller, endUser };
}

/** The run that makes a call: the budgets that bound it, by their ids, see `RunBudgets`; and what counts the call after its end. */
export type CallLimit = {
  boundBy?: readonly string[] | undefined;
  spend(spent: { usage: Usage; costUsd: number }): void;
};

/**
 * How a call ended. `usage` is the provider's count. Without it, `estimate` counts the texts that were transmitted. Without
 * both, only billed failed attempts cost something.
 */
export type CallEnd = {
  usage?: Usage | undefined;
  estimate?: () => Usage;
  finishReason?: FinishReason;
  /** The texts for the log record. Only called if they are kept. */
  content?: () => CompletionRecord["content"];
  /** Set when it did not complete. */
  error?: unknown;
  /** The answer existed already, so the call cost nothing. */
  isCached?: boolean;
};

/** What the call used and cost, billed failed attempts included. */
type Settlement = { usage: Usage; costUsd: number; timingsMs: Preprocessing["timingsMs"] };

type CallDeps = Pick<GatewayDeps, "callTexts"> & {
  ledger: Pick<Ledger, "record" | "requireTaken">;
  budgets: Pick<Budgets, "reserve">;
  runBudgets: Pick<RunBudgets, "reserve">;
};

/** One model call under way. It is settled exactly once, however it ends. */
export type Call = ReturnType<typeof beginCall>;

export type CallAbout = {
  kind: CompletionRecord["kind"];
  routing: Routing;
  isStreamed: boolean;
  /** The estimate of the prompt. */
  inputTokens: () => number;
  /** Whether its record keeps its texts; default: no. */
  areTextsKept?: boolean;
};
/** A call that will cost something, with its highest possible cost. */
export type PricedCall = CallAbout & { toBounds: () => CostBounds };

/**
 * Starts a call that will cost something. It reserves the call's highest possible cost from the tenant's budget, or what is
 * left of it; and what it may use from the budgets that bound its run.
 * @throws AppError `budget_exhausted`; `storage_full`, `store_read_only` while its record could not be stored.
 */
export async function openCall(deps: CallDeps, caller: GatewayCaller, about: PricedCall): Promise<Call> {
  const mayKeep = about.kind === "chat" && caller.isErased !== true; // only chats have texts in their records
  const areTextsKept = mayKeep && (await deps.callTexts.areKept(caller.tenantId));
  if (about.routing.model.price.input > 0) await deps.ledger.requireTaken();
  const { boundBy } = caller.limit ?? {};
  const held =
    boundBy === undefined
      ? await deps.budgets.reserve(caller, about.toBounds, caller.signal)
      : await deps.runBudgets.reserve(caller, boundBy, about, caller.signal);
  return beginCall(deps.ledger, caller, { ...about, areTextsKept }, held);
}

/** Begins the record of a call; it reaches the ledger when it is settled. */
export function beginCall(
  ledger: Pick<Ledger, "record">,
  caller: GatewayCaller,
  about: CallAbout,
  held?: RunReservation,
) {
  const { routing } = about;
  const logId = newId("log");
  const requestId = currentRequestId();
  const createdAt = new Date();
  const startedAt = performance.now();
  let attempts = 0;
  let firstAttemptAt = startedAt;
  let firstTokenMs: number | undefined;
  let settlement: Settlement | undefined;
  const failedAttempts = makeFailedAttempts(routing.model, about.inputTokens);
  const sinceStart = () => round(performance.now() - startedAt);
  return {
    logId,
    /**
     * The request as the next attempt may send it: for a tenant with a budget limited to what is set aside, less what failed
     * attempts have cost; else as it is.
     * @throws AppError `budget_exhausted` when failed attempts have used it up.
     */
    capped: (request: CompletionRequest): CompletionRequest =>
      held === undefined ? request : capRequest(request, held, failedAttempts.sum()?.nanoUsd ?? 0),
    /** Notes that an attempt begins. */
    onAttempt: () => {
      attempts++;
      if (attempts === 1) firstAttemptAt = performance.now();
    },
    /** Notes that the first part of a streamed answer is there. */
    onFirstToken: () => {
      firstTokenMs ??= sinceStart();
    },
    /** Notes that an attempt has failed and is billed all the same. */
    onCharged: failedAttempts.add,
    settle: (end: CallEnd): Settlement => {
      if (settlement !== undefined) return settlement;
      const { isCached = false } = end;
      const { usage: own, isReported } = countUsage(end);
      const ownNanoUsd = isCached ? 0 : toNanoUsd(routing.model, own);
      const failed = failedAttempts.sum();
      const usage = failed ? addUsage(own, failed.usage) : own;
      const costNanoUsd = ownNanoUsd + (failed?.nanoUsd ?? 0);
      held?.settle(costNanoUsd, usage);
      caller.limit?.spend({ usage, costUsd: toUsd(costNanoUsd) });
      const durationMs = sinceStart();
      const { error, outcome } = outcomeOf(end, caller.signal);
      ledger.record({
        _id: logId,
        tenantId: caller.tenantId,
        keyId: caller.keyId,
        surface: caller.surface,
        kind: about.kind,
        requestedModel: routing.requested,
        model: routing.model.id,
        provider: routing.model.provider,
        isStreamed: about.isStreamed,
        outcome,
        inputTokens: usage.inputTokens,
        outputTokens: usage.outputTokens,
        usageSource: isReported && !failed ? "provider" : "estimate",
        costNanoUsd,
        isCached,
        attempts,
        durationMs,
        createdAt,
        ...defined({ requestId, endUser: caller.endUser, finishReason: end.finishReason, error, firstTokenMs }),
        ...caller.origin,
        ...(caller.guard && guardOf(caller.guard)),
        ...(about.areTextsKept && outcome !== "blocked" && defined({ content: end.content?.() })),
      });
      const providerMs = round(durationMs - (firstAttemptAt - startedAt));
      const timingsMs = defined({ total: durationMs, provider: providerMs, firstToken: firstTokenMs });
      settlement = { usage, costUsd: toUsd(costNanoUsd), timingsMs };
      return settlement;
    },
  };
}

/** The tokens that a call used, and whether its provider counted them. */
export function countUsage({ usage, estimate }: Pick<CallEnd, "usage" | "estimate">) {
  const reported = plausible(usage);
  if (reported !== undefined) return withoutZeros(reported, estimate ?? (() => reported));
  return { usage: estimate?.() ?? { inputTokens: 0, outputTokens: 0 }, isReported: false };
}

function capRequest(request: CompletionRequest, held: RunReservation, failedNanoUsd: number) {
  const { nanoUsd, bounds, answerTokens = Number.POSITIVE_INFINITY } = held;
  const leftNanoUsd = nanoUsd - failedNanoUsd;
  if (leftNanoUsd < bounds.leastNanoUsd) {
    throw new AppError(
      "budget_exhausted",
      "Attempts that failed have used up what was left of the budget for this call.",
    );
  }
  return { ...request, maxTokens: Math.min(bounds.answerFor(leftNanoUsd), answerTokens) };
}

function outcomeOf({ error: thrown }: CallEnd, signal: AbortSignal) {
  const error = thrown === undefined ? undefined : withoutText(toErrorView(thrown));
  return { error, outcome: toOutcome(error, signal) };
}

/** How a call ended, as its record says it. */
export function toOutcome(error: ErrorView | undefined, signal?: AbortSignal): CompletionRecord["outcome"] {
  if (error === undefined) return "completed";
  if (error.code === "compliance_blocked") return "blocked";
  return signal?.aborted || error.code === "client_closed" ? "aborted" : "failed";
}

const round = (ms: number) => Math.round(ms * 1_000) / 1_000;
