import { checkRoom, makeDefinitions, toVersionView } from "../definitions/definitions.ts";
import type { ToolNames } from "../definitions/tool-names.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { defined } from "../lib/defined.ts";
import { AppError, renameField } from "../lib/errors.ts";
import type { PageQuery } from "../store/page.ts";
import type { Store } from "../store/store.ts";
import type { TriggerChange, TriggerRecord } from "../store/trigger-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { Evaluator } from "../workflows/evaluator.ts";
import type { TriggerBody, TriggerView } from "./event-schemas.ts";
import { listFirings, toMaker } from "./firings.ts";
import { readTarget, type Starter } from "./targets.ts";

type TriggersDeps = {
  store: Pick<Store, "triggers" | "firings">;
  starter: Starter;
  jobs: Pick<Jobs, "find" | "statesOf">;
  toolNames: ToolNames;
  evaluator: Pick<Evaluator, "checkRules" | "checkValue" | "holds" | "valueOf">;
};

type TriggerReplacement = TriggerBody & { version?: number | undefined };

/** What events start. */
export function makeTriggers(deps: TriggersDeps) {
  const { triggers, firings } = deps.store;
  const definitions = makeDefinitions({
    what: "trigger",
    store: triggers,
    toolNames: deps.toolNames,
    checkQuota: (tenantId) => checkRoom("triggers", { store: triggers, tenantId }),
    toChange: (caller, body: Omit<TriggerReplacement, "version">) => toChange(deps, caller, body),
    toView,
    toSummary: toView,
  });
  return {
    /** @throws AppError `invalid_request`, `not_found` for its target, `quota_exceeded`. */
    create: definitions.create,
    list: definitions.list,
    get: definitions.get,
    /** It starts things with the rights of who replaced it. @throws AppError as `create`; `insufficient_role`, `wrong_state`. */
    replace: definitions.replace,
    remove: definitions.remove,
    /** @throws AppError `not_found`. */
    async firings(tenantId: string, id: string, page: PageQuery) {
      await definitions.find(tenantId, id);
      return listFirings({ firings, jobs: deps.jobs }, { tenantId, ownerId: id, page });
    },
  };
}

async function toChange(
  { starter, evaluator }: TriggersDeps,
  caller: Caller,
  { event, when, inputFrom, target, enabled: isEnabled }: TriggerBody,
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
