import type { AuditCall, AuditContent } from "../store/audit-store.ts";
import type { AuditLog } from "./audit.ts";
import { makeReasoning } from "./reasoning.ts";
import type { RunUsage } from "./run-usage.ts";

/** A response of the model as it is recorded. */
export type Turn = Extract<AuditContent, { kind: "intention" | "answer" }>;
export type Observed = Extract<AuditContent, { kind: "observation" }>;
/** A recorded response of the model with the results of all its calls. */
export type WholeTurn = {
  turn: Extract<Turn, { kind: "intention" }>;
  observed: { call: AuditCall; observation: Observed }[];
};
export type Iterations = ReturnType<typeof makeIterations>;

/** The iterations of one run, by its audit log: those that an earlier worker recorded, and those that are recorded now. */
export function makeIterations(auditLog: Pick<AuditLog, "recorded" | "append">, usage: RunUsage) {
  const recorded = auditLog.recorded.filter(isTurn);
  const observed = new Map<string, Observed>();
  const calls = new Map<string, AuditCall & { index: number; place: number }>();
  const reasoning = makeReasoning();
  let best = "";
  let lastObserved = "";
  let count = 0;
  let cutBy: Extract<Turn, { kind: "answer" }>["cut"];

  const take = (turn: Turn): Turn => {
    count += 1;
    cutBy = turn.kind === "answer" ? turn.cut : undefined;
    if (turn.thought.trim() !== "") best = turn.thought;
    if (turn.kind === "answer") return turn;
    for (const [place, call] of turn.calls.entries()) calls.set(call.id, { ...call, index: count, place });
    const [first] = turn.calls;
    if (first && turn.parts !== undefined) reasoning.take(turn.parts, first.id);
    return turn;
  };
  const takeObservation = (observation: Observed) => {
    observed.set(observation.callId, observation);
    if (!observation.isError) lastObserved = observation.output;
  };
  for (const content of auditLog.recorded) {
    if ("spent" in content) usage.recall(content.spent);
    if (content.kind === "observation") takeObservation(content);
  }
  return {
    /**
     * The responses that an earlier worker recorded together with the results of all their calls. They are the beginning of the
     * conversation: a run that has waited a thousand times goes on at once.
     */
    recallWhole(): WholeTurn[] {
      const whole: WholeTurn[] = [];
      for (let turn = recorded[count]; turn?.kind === "intention"; turn = recorded[count]) {
        const results = turn.calls.flatMap((call) => {
          const observation = observed.get(call.id);
          return observation ? [{ call, observation }] : [];
        });
        if (results.length < turn.calls.length) break;
        take(turn);
        whole.push({ turn, observed: results });
      }
      return whole;
    },
    /** The next response of the model that an earlier worker recorded. */
    recall(): Turn | undefined {
      const next = recorded[count];
      return next && take(next);
    },
    /** The results of all tool calls so far. */
    observations: () => [...observed.values()],
    /** The result of a tool call that was recorded. */
    recallResult: (callId: string) => observed.get(callId),
    async record(turn: Turn): Promise<void> {
      await auditLog.append(turn);
      take(turn);
    },
    async recordResult(observation: Observed): Promise<void> {
      await auditLog.append(observation);
      takeObservation(observation);
    },
    /** A tool call that the model asked for, with the place of its response from 1, and its own in that from 0. */
    callOf: (callId: string) => calls.get(callId),
    /** A message of the conversation, with the reasoning of its turn. */
    withReasoning: reasoning.addTo,
    /** Responses of the model so far. */
    count: () => count,
    /** Why the last answer is not whole; undefined when it is. */
    cutBy: () => cutBy,
    /** The best output so far: what the model said last, else what it observed last. */
    bestAnswer: () => (best === "" ? lastObserved : best),
  };
}

const isTurn = (content: AuditContent) => content.kind === "intention" || content.kind === "answer";
