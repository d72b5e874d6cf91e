/** How long after the begin of its last work a tenant counts as one that works here, in ms. */
const PRESENT_MS = 5_000;

export type Presence = ReturnType<typeof makePresence>;

/** Knows whether a tenant is alone in a process. */
export function makePresence(now: () => number = () => performance.now()) {
  /** Who began last, and who before: of two different tenants one is another than any third. */
  let last = { tenantId: "", at: Number.NEGATIVE_INFINITY };
  let before = { ...last };
  return {
    /** Notes that work of the tenant begins. It is called for each request, so it makes no objects. */
    begins(tenantId: string): void {
      if (last.tenantId !== tenantId) [last, before] = [before, last];
      last.tenantId = tenantId;
      last.at = now();
    },
    /** Whether another tenant's work began of late. */
    hasOthers(tenantId: string): boolean {
      const other = last.tenantId === tenantId ? before : last;
      return now() - other.at < PRESENT_MS;
    },
  };
}
