import { defined } from "../lib/defined.ts";
import { AppError } from "../lib/errors.ts";
import type { StoredMaker } from "../store/schedule-store.ts";
import { type Caller, fromStoredCaller, toStoredCaller } from "../tenancy/roles.ts";
import type { Tenancy } from "../tenancy/tenancy.ts";

/** What the record of a schedule or a trigger keeps of who made it. */
export const toMaker = (caller: Caller): StoredMaker => ({
  ...toStoredCaller(caller),
  ...defined({ endsAt: caller.expiresAt }),
});

/**
 * The caller for whom something is started that they made: what a key makes ends with it.
 * @throws AppError `insufficient_scope` once its key, or its access token, is revoked or has expired.
 */
export async function callerOf(
  tenancy: Pick<Tenancy, "isUsableKey">,
  tenantId: string,
  { endsAt, ...stored }: StoredMaker,
): Promise<Caller> {
  const isOver = endsAt !== undefined && endsAt.getTime() <= Date.now();
  // An access token has no record; it always has an end.
  const isUsable = !isOver && ((await tenancy.isUsableKey(tenantId, stored.keyId)) ?? endsAt !== undefined);
  if (isUsable) return { ...fromStoredCaller(tenantId, stored), ...defined({ expiresAt: endsAt }) };
  throw new AppError(
    "insufficient_scope",
    "The key that made this was revoked or has expired; replace it by another key.",
  );
}

/** Whether no later firing can do better: what it starts is gone, or the key that made it. */
export const isForGood = (error: unknown) =>
  error instanceof AppError && (error.code === "not_found" || error.code === "insufficient_scope");
