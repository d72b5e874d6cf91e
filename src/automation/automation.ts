import type { Agents } from "../agents/agents.ts";
import type { Composite } from "../composite/composite.ts";
import type { ToolNames } from "../definitions/tool-names.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { Waits } from "../jobs/waits.ts";
import type { Logger } from "../observe/logger.ts";
import type { Rag } from "../rag/rag.ts";
import type { Store } from "../store/store.ts";
import type { DataKeys } from "../tenancy/data-keys.ts";
import type { GuardPolicies } from "../tenancy/guard-policies.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import type { Tenancy } from "../tenancy/tenancy.ts";
import type { Evaluator } from "../workflows/evaluator.ts";
import type { Workflows } from "../workflows/workflows.ts";
import { makeEventSources } from "./event-sources.ts";
import { makeEvents } from "./events.ts";
import { makeSweep } from "./fire.ts";
import { makeSchedules } from "./schedules.ts";
import { makeStarter } from "./targets.ts";
import { makeTriggers } from "./triggers.ts";

type AutomationDeps = {
  store: Store;
  jobs: Jobs;
  agents: Agents;
  workflows: Workflows;
  composite: Composite;
  rag: Rag;
  quotas: Quotas;
  guards: Pick<GuardPolicies, "take" | "requireClear">;
  toolNames: ToolNames;
  tenancy: Tenancy;
  waits: Waits;
  evaluator: Evaluator;
  dataKeys: DataKeys;
  logger: Logger;
};

/** What starts without a request: at a time, or by an event. */
export function makeAutomation(deps: AutomationDeps) {
  const starter = makeStarter(deps);
  const bound = { ...deps, starter };
  const events = makeEvents(bound);
  return {
    schedules: makeSchedules(bound),
    triggers: makeTriggers(bound),
    events,
    eventSources: makeEventSources(bound),
    /** Events, as durable work. */
    work: events.work,
    /** Refuses an input that must not be kept; see `Starter.screen`. */
    screen: starter.screen,
    /** Takes what is due; see `makeSweep`. Run it on a schedule. */
    sweep: makeSweep(bound),
  };
}
