import { AppError } from "../lib/errors.ts";

/** Schedules that a tenant may have; as many triggers, event sources and webhooks, each. */
export const MAX_OF_A_KIND = 1_000;

/** @throws AppError `quota_exceeded` when the tenant has as many of them as it may. */
export async function checkRoom(
  what: string,
  store: { count(tenantId: string, limit: number): Promise<number> },
  tenantId: string,
): Promise<void> {
  if ((await store.count(tenantId, MAX_OF_A_KIND)) < MAX_OF_A_KIND) return;
  const message = `A tenant may have ${MAX_OF_A_KIND} ${what}. Delete some first.`;
  throw new AppError("quota_exceeded", message, { details: { limit: MAX_OF_A_KIND } });
}
