import { makeDefinitions, toVersionView } from "../definitions/definitions.ts";
import type { ToolNames } from "../definitions/tool-names.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { defined } from "../lib/defined.ts";
import { AppError, notFound, renameField } from "../lib/errors.ts";
import type { PageQuery } from "../store/page.ts";
import type { Store } from "../store/store.ts";
import type { TriggerChange, TriggerRecord } from "../store/trigger-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { Evaluator } from "../workflows/evaluator.ts";
import type { TriggerBody, TriggerView } from "./event-schemas.ts";
import { listFirings } from "./firings.ts";
import { checkRoom } from "./limits.ts";
import { toMaker } from "./makers.ts";
import { readTarget, type Starter } from "./targets.ts";

export type TriggersDeps = {
  store: Pick<Store, "triggers" | "firings">;
  starter: Starter;
  jobs: Pick<Jobs, "find" | "statesOf">;
  toolNames: ToolNames;
  evaluator: Pick<Evaluator, "checkRules" | "checkValue" | "holds" | "valueOf">;
};

/** A body with the caller whose rights it starts things with. */
type MadeBody = TriggerBody & { caller: Caller; version?: number | undefined };

/** What events start. */
export function makeTriggers(deps: TriggersDeps) {
  const { triggers, firings } = deps.store;
  const definitions = makeDefinitions({
    what: "trigger",
    store: triggers,
    toolNames: deps.toolNames,
    publishedAs: () => undefined,
    checkQuota: (tenantId) => checkRoom("triggers", triggers, tenantId),
    toChange: (_, body: Omit<MadeBody, "version">) => toChange(deps, body),
    toView,
    toSummary: toView,
  });
  return {
    /** @throws AppError `invalid_request`, `not_found` for its target, `quota_exceeded`. */
    create: (caller: Caller, body: TriggerBody) => definitions.create(caller, { ...body, caller }),
    list: definitions.list,
    get: definitions.get,
    /** It starts things with the rights of who replaced it. @throws AppError as `create`; `insufficient_role`, `wrong_state`. */
    replace: (caller: Caller, id: string, body: TriggerBody & { version?: number | undefined }) =>
      definitions.replace(caller, id, { ...body, caller }),
    remove: definitions.remove,
    /** @throws AppError `not_found`. */
    async firings(tenantId: string, id: string, page: PageQuery) {
      if (!(await triggers.get(tenantId, id))) throw notFound("trigger");
      return listFirings({ firings, jobs: deps.jobs }, { tenantId, ownerId: id, page });
    },
  };
}

async function toChange(
  { starter, evaluator }: TriggersDeps,
  { caller, event, when, inputFrom, target, enabled: isEnabled }: Omit<MadeBody, "version">,
): Promise<TriggerChange> {
  const asker = { tenantId: caller.tenantId };
  if (when !== undefined) await byField(evaluator.checkRules(asker, [{ field: "trigger", rule: when }]));
  if (inputFrom !== undefined) await byField(evaluator.checkValue(asker, { at: "inputFrom", expression: inputFrom }));
  await starter.requireThere(caller, target);
  return {
    ...{ event, ...defined({ when, inputFrom }), target: JSON.stringify(target), isEnabled },
    maker: toMaker(caller),
  };
}

/** Names the field of a body that an expression's error is about. */
async function byField(check: Promise<unknown>): Promise<void> {
  try {
    await check;
  } catch (error) {
    throw error instanceof AppError ? renameField(error, (field) => field.replace(/^(trigger|rule)\./, "")) : error;
  }
}

function toView(trigger: TriggerRecord): TriggerView {
  const { _id: triggerId, event, when, inputFrom, isEnabled: enabled, disabledBecause } = trigger;
  const about = defined({ when, inputFrom, disabledBecause });
  return { triggerId, event, target: readTarget(trigger.target), enabled, ...about, ...toVersionView(trigger) };
}
