import { invalidRequest } from "../lib/errors.ts";
import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import type { CompletionRecord } from "../store/completion-store.ts";
import type { TenantStore } from "../store/tenant-store.ts";

const DAY_MS = 86_400_000;

/** How long the texts of calls are kept: not at all, for some days, or as long as the records that they stand in. */
type TextsKept = "off" | "as_logs" | number;

/** The texts of a tenant's model calls, requests and answers, in its call logs. */
export type CallTexts = ReturnType<typeof makeCallTexts>;

/** `isKeptByDefault`: the operator's choice for tenants that made none. `logDays`: as long as records are kept; 0 for ever. */
export function makeCallTexts(
  store: Pick<TenantStore, "find" | "setCallTextDays">,
  { isKeptByDefault, logDays }: { isKeptByDefault: boolean; logDays: number },
) {
  const toKept = (days: number | undefined): TextsKept => {
    if (days === undefined) return isKeptByDefault ? "as_logs" : "off";
    return days === 0 ? "off" : days;
  };
  const cache = makeStaleWhileRevalidate(async (tenantId) => toKept((await store.find(tenantId))?.callTextDays));
  return {
    /** Never older than 4 s. */
    find: async (tenantId: string) => cache.find(tenantId),
    /** Whether the texts of a call that is made now are kept; likewise. */
    areKept: async (tenantId: string) => (await cache.find(tenantId)) !== "off",
    /** @throws AppError `invalid_request` for more days than the platform keeps the records. */
    async put(tenantId: string, kept: "off" | number): Promise<void> {
      if (kept !== "off" && logDays > 0 && kept > logDays) {
        const limit = `This platform keeps the records of calls, and so their texts, for ${logDays} days at most.`;
        throw invalidRequest("callTextDays", limit);
      }
      await store.setCallTextDays(tenantId, kept === "off" ? 0 : kept);
      cache.forget(tenantId);
    },
    /** The record without texts that are kept no longer: the sweep removes them a while later. */
    async hideOld(record: CompletionRecord): Promise<CompletionRecord> {
      if (record.content === undefined) return record;
      const kept = await cache.find(record.tenantId);
      if (kept === "as_logs" || (kept !== "off" && record.createdAt.getTime() >= keptSince(kept).getTime()))
        return record;
      const { content: _removed, ...rest } = record;
      return rest;
    },
  };
}

/** Texts of calls that began earlier are kept no longer. */
export const keptSince = (days: number) => new Date(Date.now() - days * DAY_MS);
