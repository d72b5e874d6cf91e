import type { Redis } from "ioredis";
import { ConfigError } from "../../lib/errors.ts";
import { withTimeout } from "../../lib/with-timeout.ts";
import type { Logger } from "../../observe/logger.ts";

/** Longest wait at start for what a server reports of itself, in ms; without it the start goes on. */
const INFO_TIMEOUT_MS = 2_000;
/** How old a report may be, in ms. */
const FRESH_MS = 60_000;
const OLDEST_VERSION = "6.2";

/**
 * Looks at what Redis reports of itself: logs once what puts jobs at risk, and keeps it for the readiness. A report that does
 * not come is left out, since some services do not give it.
 * @throws ConfigError when it is a cluster or a Sentinel, and the settings say otherwise.
 */
export async function inspectRedis(client: Redis, { isCluster, logger }: { isCluster: boolean; logger: Logger }) {
  let remark: string | undefined;
  let lookedAt = performance.now();
  const look = async () => {
    lookedAt = performance.now();
    const report = await withTimeout(readReport(client), INFO_TIMEOUT_MS, () => new Error("no report in time"));
    rejectOtherKind(report, isCluster);
    const found = remarkOn(report);
    if (found !== undefined && found !== remark) logger.warn({ remark: found }, "a setting of Redis puts jobs at risk");
    remark = found;
  };
  const lookLater = (error: unknown) => {
    if (error instanceof ConfigError) throw error;
    logger.debug({ err: error }, "Redis did not report its settings");
  };
  await look().catch(lookLater);
  return {
    remark(): string | undefined {
      if (performance.now() - lookedAt > FRESH_MS) void look().catch(() => undefined); // the last report serves
      return remark;
    },
  };
}

/** What the server reports of itself, by names. */
async function readReport(client: Redis): Promise<Map<string, string>> {
  const lines = (await client.info()).matchAll(/^(\w+):(.*?)\r?$/gm);
  return new Map(Array.from(lines, ([, name = "", value = ""]) => [name, value]));
}

function rejectOtherKind(report: Map<string, string>, isCluster: boolean): void {
  if (report.get("redis_mode") === "sentinel")
    throw new ConfigError("REDIS_URL: this is a Sentinel. Name it as redis+sentinel://host:26379/primary.");
  if (report.get("cluster_enabled") === "1" && !isCluster)
    throw new ConfigError("REDIS_URL: this is a server of a Redis Cluster. Set REDIS_CLUSTER=true.");
}

/** What puts jobs at risk; undefined when nothing does. */
function remarkOn(report: Map<string, string>): string | undefined {
  const policy = report.get("maxmemory_policy");
  if (policy !== undefined && policy !== "noeviction")
    return `its eviction policy is ${policy}, which may remove jobs: set maxmemory-policy noeviction`;
  const version = report.get("valkey_version") ?? report.get("redis_version") ?? OLDEST_VERSION;
  if (version.localeCompare(OLDEST_VERSION, "en", { numeric: true }) < 0)
    return `its version is ${version}: ${OLDEST_VERSION} or newer is needed`;
  return undefined;
}
