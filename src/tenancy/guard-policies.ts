import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import type { z } from "zod";
import { type CallGuard, makeCallGuard } from "../guards/call-guard.ts";
import { guardKinds } from "../guards/guard.ts";
import { mapAllTexts, mapTexts } from "../guards/map-texts.ts";
import {
  byPlace,
  type GuardCount,
  type GuardPlace,
  type GuardRules,
  guardActions,
  type RulesOfPlaces,
} from "../guards/rules.ts";
import type { Presence } from "../isolation/pace.ts";
import { makePace } from "../isolation/pace.ts";
import { AppError } from "../lib/errors.ts";
import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import { noteFound } from "../net/call-scope.ts";
import type { CallOrigin } from "../store/completion-store.ts";
import type { TenantStore } from "../store/tenant-store.ts";
import { type GuardPolicy, type guardCheckBodySchema, guardPolicySchema, noGuards } from "./guard-schemas.ts";

/** Whose call it is, as exceptions name it. */
export type GuardedCaller = {
  tenantId: string;
  keyId?: string | undefined;
  agentId?: string | undefined;
  workflowId?: string | undefined;
};

/** The guard of one call. `rulesKey` says by which rules its answer is guarded. `takesMedia`: what cannot be read may pass. */
export type PolicyGuard = CallGuard & { rulesKey: string; takesMedia: boolean };

type CallOptions = {
  /** Whether nothing of the answer is kept: only then values are put back into it. */
  mayRestore?: boolean | undefined;
};

/** Who works here, and who is told of what is found, and of what is not let through, for all tenants. */
type Around = {
  presence?: Presence;
  onFound?(counts: readonly GuardCount[]): void;
  onBlocked?(caller: GuardedCaller, counts: readonly GuardCount[]): void;
};

export type GuardPolicies = ReturnType<typeof makeGuardPolicies>;

/** `owner`: the tenant in whose turns texts are read. */
type Compiled = { policy: GuardPolicy; isOff: boolean; all: RulesOfPlaces; owner: string };

/** How long a text waits for its turn, in ms. */
const MAX_WAIT_MS = 60_000;

/** What tenants want to be guarded, and the guards of their calls. */
export function makeGuardPolicies(
  store: Pick<TenantStore, "find" | "setGuards">,
  { presence, onFound, onBlocked }: Around = {},
) {
  const cache = makeStaleWhileRevalidate<Compiled>(async (tenantId) => {
    const { guards, rootTenantId = tenantId } = (await store.find(tenantId)) ?? {};
    return compile(guards, rootTenantId);
  });
  const turns = makePace(undefined, presence);
  /** Reads a part of a text in the turn of its tenant, and lets others have theirs. */
  const inTurnOf = (owner: string) =>
    async function inTurn<T>(step: () => T): Promise<T> {
      const waiting = AbortSignal.timeout(MAX_WAIT_MS);
      const taken = await turns
        .share(owner, waiting, async () => ({ value: step() }))
        .catch((error: unknown) => {
          if (error !== waiting.reason) throw error;
          throw new AppError(
            "unavailable",
            "The guards have too much to read for you right now; nothing was processed.",
            {
              retryable: true,
              retryAfterMs: 2_000,
            },
          );
        });
      await setImmediate();
      return taken.value;
    };
  const forCall = async (caller: GuardedCaller, options: CallOptions = {}): Promise<PolicyGuard | undefined> => {
    const found = await cache.find(caller.tenantId);
    if (found.isOff) return undefined;
    return guardOf(found, caller, {
      ...options,
      inTurn: inTurnOf(found.owner),
      onFound(counts) {
        noteFound(counts);
        onFound?.(counts);
      },
      onBlocked: (counts) => onBlocked?.(caller, counts),
    });
  };
  return {
    /** Never older than 4 s. */
    find: async (tenantId: string): Promise<GuardPolicy> => (await cache.find(tenantId)).policy,
    async put(tenantId: string, policy: GuardPolicy): Promise<void> {
      await store.setGuards(tenantId, policy);
      cache.forget(tenantId);
    },
    /** The guard of a call; undefined where nothing is guarded. */
    forCall,
    /** Tells of what a regulated profile refused, whatever the policy. */
    tellRefused: (caller: GuardedCaller, counts: readonly GuardCount[]): void => onBlocked?.(caller, counts),
    /** What would become of a text. Nothing is kept of it, and nothing counted. */
    async check(caller: GuardedCaller, { text, place, policy }: z.output<typeof guardCheckBodySchema>) {
      const own = await cache.find(caller.tenantId);
      const asked = policy ? compile(policy, own.owner) : own;
      const guard = guardOf(asked, caller, { inTurn: inTurnOf(own.owner) });
      const findings = await guard.read({ place, field: "text", text });
      const action = guardActions.findLast((one) => findings.some((finding) => finding.action === one)) ?? "off";
      if (action === "block") return { action, findings };
      const [taken = ""] = await guard.take([{ place, field: "text", text }]);
      return { action, findings, text: taken };
    },
    /** Whether anything is masked, whoever calls: then no request goes on as it came. */
    async masks(tenantId: string): Promise<boolean> {
      const { policy, isOff } = await cache.find(tenantId);
      if (isOff) return false;
      return [policy.rules, ...policy.exceptions.map(({ rules }) => rules)].some((rules) =>
        Object.values(rules).some((actions) => Object.values(actions ?? {}).some((one) => one === "mask")),
      );
    },
    /**
     * A value, as a body of JSON has it, with its texts guarded: as it may be kept and sent on. Throws as the `take` of a guard.
     */
    async take<T>(caller: GuardedCaller, place: GuardPlace, value: T): Promise<T> {
      const guard = await forCall(caller);
      return guard === undefined ? value : await takeBy(guard, place, value);
    },
    /**
     * Refuses ids and addresses, by the names of their fields, that hold what is masked or blocked: a mark would make them into others.
     * @throws as the `take` of a guard.
     */
    async requireClear(caller: GuardedCaller, place: GuardPlace, ids: Ids): Promise<void> {
      const guard = await forCall(caller);
      if (guard) requireClearBy(guard, place, ids);
    },
  };
}

/** The guard of a model's call. `deps` and `caller` are those of the gateway. */
export async function guardFor(
  { guards }: { guards: Pick<GuardPolicies, "forCall"> },
  caller: {
    tenantId: string;
    keyId: string;
    origin?: CallOrigin;
    mayRestore?: boolean | undefined;
  },
): Promise<PolicyGuard | undefined> {
  const { tenantId, keyId, origin, mayRestore = false } = caller;
  const { agentId, workflowId } = origin ?? {};
  return guards.forCall({ tenantId, keyId, agentId, workflowId }, { mayRestore });
}

type Ids = Readonly<Record<string, string | null | undefined>>;

/** Refuses ids and addresses that hold what is masked or blocked. @throws as the `take` of a guard. */
export function requireClearBy(guard: CallGuard, place: GuardPlace, ids: Ids): void {
  const texts = Object.entries(ids).flatMap(([field, text]) => (text ? [{ place, field, text }] : []));
  guard.takeAtOnce(texts, { isExact: true });
}

/** A value with its texts guarded. `isWire`: it is of a vendor's wire. @throws as the `take` of a guard. */
export function takeBy<T>(guard: CallGuard, place: GuardPlace, value: T, { isWire = false } = {}): Promise<T> {
  return mapAllTexts((visit) => mapTexts(value, { place, field: "", isWire }, visit), guard.take);
}

/** How a policy would treat texts, without counting them. */
export function guardOf(
  { policy, all }: Pick<Compiled, "policy" | "all">,
  caller: GuardedCaller,
  options: CallOptions & Pick<Parameters<typeof makeCallGuard>[0], "inTurn" | "onFound" | "onBlocked">,
): PolicyGuard {
  const rules = rulesFor(policy, caller);
  const places = rules === policy.rules ? all : byPlace(rules);
  const { mayRestore = false, ...told } = options;
  const guard = makeCallGuard({ rules: places, restores: policy.restore && mayRestore, ...told });
  const rulesKey = createHash("sha256").update(JSON.stringify(rules)).digest("base64url");
  return { ...guard, rulesKey, takesMedia: policy.unreadable === "pass" };
}

function compile(stored: unknown, owner: string): Compiled {
  const policy = guardPolicySchema.parse(stored ?? noGuards);
  const isOff = !hasRules(policy.rules) && policy.exceptions.every(({ rules }) => !hasRules(rules));
  return { policy, isOff, all: byPlace(policy.rules), owner };
}

const hasRules = (rules: GuardRules) =>
  Object.values(rules).some((actions) => Object.values(actions ?? {}).some((action) => action !== "off"));

/** The rules of all with the exceptions that fit, a later one over an earlier one. */
function rulesFor({ rules, exceptions }: GuardPolicy, { keyId, agentId, workflowId }: GuardedCaller): GuardRules {
  const fitting = exceptions.filter(
    (one) =>
      (one.keyId !== undefined && one.keyId === keyId) ||
      (one.agentId !== undefined && one.agentId === agentId) ||
      (one.workflowId !== undefined && one.workflowId === workflowId),
  );
  const merged: GuardRules = { ...rules };
  for (const { rules: own } of fitting)
    for (const kind of guardKinds) if (own[kind]) merged[kind] = { ...merged[kind], ...own[kind] };
  return fitting.length === 0 ? rules : merged;
}
