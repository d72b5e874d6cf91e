import type { Collection } from "mongodb";
import { ofTenant } from "./collection.ts";
import type { JobRecord } from "./job-record.ts";
import type { JobState } from "./job-state.ts";
import { isDuplicateKey } from "./writes.ts";

/** Of a refused job, which no tenant finds. */
export const NO_TENANT = "";

/** What concerns jobs that were refused, of which a record is kept all the same. */
export function makeRefusals(jobs: Collection<JobRecord>) {
  return {
    /**
     * Puts the record of a refused job, which is final, in the place of the one that is as it was submitted, in the state
     * `from`, or of none; false when there is another: then it was accepted after all.
     * No sweep looks at it: whoever submitted it has the error.
     */
    async reject(record: JobRecord, from: JobState): Promise<boolean> {
      const { _id, checkAt: _check, unsettledSince: _settle, isAnnounced: _tell, ...refused } = record;
      const { createdAt } = refused; // another one is a later attempt at the same call, which may have been accepted
      try {
        const asSubmitted = { _id, status: from, createdAt, startedAt: { $exists: false } };
        await jobs.replaceOne(asSubmitted, refused, { upsert: true });
        return true;
      } catch (error) {
        if (!isDuplicateKey(error)) throw error;
        const there = await jobs.findOne({ _id });
        return there?.status === "failed" && there.attempts === 0; // else a worker has it, or had it
      }
    },
    /**
     * The job of an earlier attempt at a call, which no refusal of that attempt takes back any more; null when it was refused, or
     * never accepted.
     */
    async adopt(tenantId: string, jobId: string): Promise<JobRecord | null> {
      const own = ofTenant(tenantId, { _id: jobId });
      const unstarted = { ...own, status: "queued" as const, startedAt: { $exists: false } };
      const $set = { createdAt: new Date() };
      const adopted = await jobs.findOneAndUpdate(unstarted, { $set }, { returnDocument: "after" });
      return adopted ?? jobs.findOne(own);
    },
    /** Puts a job in the place of a refused one of its id: the same call, tried again. False when no refused one has the id. */
    async replaceRefused({ _id, ...record }: JobRecord): Promise<boolean> {
      return (await jobs.replaceOne({ _id, tenantId: NO_TENANT }, record)).matchedCount === 1;
    },
  };
}
