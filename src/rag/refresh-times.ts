import { jittered } from "../lib/jitter.ts";

const HOUR_MS = 3_600_000;

/** When a document's URL is read next: within the last tenth of its interval. */
export const nextRefresh = (everyHours: number): Date =>
  new Date(Date.now() + jittered(everyHours * HOUR_MS, { share: 0.1 }));

/** The fields of a document that is to be refreshed by itself; none without an interval. */
export const toRefresh = (refreshEveryHours: number | null | undefined) =>
  refreshEveryHours ? { refreshEveryHours, refreshAt: nextRefresh(refreshEveryHours) } : {};
