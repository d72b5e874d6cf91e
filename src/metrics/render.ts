import { inspect } from "../health.ts";
import type { Platform } from "../platform.ts";

/**
 * The metrics of this process as a scraper is given them; with `isWholeFleet` also how queues and parts are now, which every
 * process could tell and the API does. Takes 2 s more at most when a part is away, and never throws for it.
 */
export async function renderMetrics(platform: Platform, { isWholeFleet }: { isWholeFleet: boolean }) {
  if (isWholeFleet) platform.metrics.fleet.set(await inspect(platform));
  return platform.metrics.render();
}
