import { statfs } from "node:fs/promises";
import { z } from "zod";
import { version } from "../lib/version.ts";
import { type Inspected, inspect, readinessSchema } from "./health.ts";

const count = z.number().int().min(0);

/** The state of the whole service, for its operator. */
export const servicePartsSchema = readinessSchema.extend({
  queues: z
    .array(
      z.object({
        queue: z.string(),
        waiting: count,
        active: count,
        delayed: count,
        failed: count,
        workers: count,
        oldestWaitingMs: count,
        isPaused: z.boolean(),
      }),
    )
    .describe("As Redis has them; none while Redis does not respond"),
  breakers: z
    .array(z.object({ provider: z.string(), open: count }))
    .describe("Breakers of this API process that are open, by provider"),
  versions: z.object({
    switchyard: z.string(),
    node: z.string(),
    data: count.optional().describe("Of the stored data; absent while the store does not respond"),
  }),
  store: z.enum(["embedded", "mongodb"]),
  redis: z.enum(["embedded", "redis"]),
  disk: z
    .object({ freeBytes: count, totalBytes: count })
    .optional()
    .describe("Of the data folder of this API process, where there is one"),
});
export type ServiceParts = z.output<typeof servicePartsSchema>;

type Service = Inspected & {
  store: { dataVersion(): Promise<number | undefined> };
  gateway: { openBreakers(): ReadonlyMap<string, number> };
  config: { dataDir: string; mongo: { url: string | undefined }; redis: { url: string | undefined } };
};

/** Looks at every part. Takes 2 s at most. */
export async function inspectService(service: Service): Promise<ServiceParts> {
  const { config, gateway, store } = service;
  const [{ readiness, queues }, data, disk] = await Promise.all([
    inspect(service),
    store.dataVersion().catch(() => undefined), // `readiness` says what is wrong with the store
    statfs(config.dataDir).catch(() => undefined), // there is no folder where nothing is embedded
  ]);
  const breakers = [...gateway.openBreakers()].map(([provider, open]) => ({ provider, open }));
  return {
    ...readiness,
    queues: [...queues],
    breakers,
    versions: { switchyard: version, node: process.version, ...(data === undefined ? {} : { data }) },
    store: config.mongo.url === undefined ? "embedded" : "mongodb",
    redis: config.redis.url === undefined ? "embedded" : "redis",
    ...(disk && { disk: { freeBytes: disk.bavail * disk.bsize, totalBytes: disk.blocks * disk.bsize } }),
  };
}
