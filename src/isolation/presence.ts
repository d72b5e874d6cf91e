/** How long after the begin of its last work a tenant counts as one that works here, in ms. */
const PRESENT_MS = 5_000;

/** Knows whether a tenant is alone in a process. */
export function makePresence(now: () => number = () => performance.now()) {
  /** Who began last, and who before: of two different tenants one is another than any third. */
  let recent: { tenantId: string; at: number }[] = [];
  return {
    /** Notes that work of the tenant begins. */
    begins(tenantId: string): void {
      const before = recent.find((other) => other.tenantId !== tenantId);
      recent = [{ tenantId, at: now() }, ...(before ? [before] : [])];
    },
    /** Whether another tenant's work began of late. */
    hasOthers: (tenantId: string) =>
      recent.some((other) => other.tenantId !== tenantId && now() - other.at < PRESENT_MS),
  };
}
