import type { Collection } from "mongodb";
import { ofTenant } from "./collection.ts";
import type { JobRecord } from "./job-record.ts";
import { finalStates, openStates } from "./job-state.ts";
import { updateIf } from "./writes.ts";

type Place = Pick<JobRecord, "_id" | "tenantId">;

/** Of jobs that have submitted others, and of those: what one must learn of the end of the other. And which one repeats another. */
export function makeKinStore(jobs: Collection<JobRecord>) {
  return {
    /** The id of the job that is to do a job again: `jobId`, unless another call was first; null when the job is gone. */
    async beginRepeat({ tenantId, _id }: Place, jobId: string): Promise<string | null> {
      const unrepeated = ofTenant(tenantId, { _id, repeat: { $exists: false } });
      if (await updateIf(jobs, unrepeated, { $set: { repeat: { jobId } } })) return jobId;
      const there = await jobs.findOne(ofTenant(tenantId, { _id }), { projection: { repeat: 1 } });
      return there?.repeat?.jobId ?? null;
    },
    /** Notes which job does a job again. */
    async repeated({ tenantId, _id }: Place, jobId: string): Promise<void> {
      await jobs.updateOne(ofTenant(tenantId, { _id }), { $set: { repeat: { jobId, isDone: true } } });
    },
    /** Notes of a job that it is about to have children, which end with it. */
    async expectChildren({ tenantId, _id }: Place): Promise<void> {
      const unnoted = ofTenant(tenantId, { _id, unsettledSince: { $exists: false } });
      await jobs.updateOne(unnoted, { $set: { unsettledSince: new Date() } });
    },
    /** Ids of open children of a job, in order, after the id `after`. */
    async openChildren(
      { tenantId, _id }: Place,
      { after, limit }: { after: string; limit: number },
    ): Promise<string[]> {
      const filter = { parentJobId: _id, _id: { $gt: after }, status: { $in: [...openStates] } };
      const found = jobs.find(ofTenant(tenantId, filter)).project<{ _id: string }>({ _id: 1 });
      return (await found.sort({ _id: 1 }).limit(limit).toArray()).map((job) => job._id);
    },
    /** Ended jobs, of all tenants, of whose end others may not know since `before`. */
    unsettled: (before: Date, limit: number): Promise<Place[]> =>
      jobs
        .find({ status: { $in: [...finalStates] }, unsettledSince: { $lt: before } })
        .project<Place>({ tenantId: 1 })
        .limit(limit)
        .toArray(),
    /** Notes that all that must know of a job's end does. */
    async settle({ tenantId, _id }: Place): Promise<void> {
      await jobs.updateOne(ofTenant(tenantId, { _id }), { $unset: { unsettledSince: "", seenLease: "" } });
    },
    /** Notes that the parent was looked at, which may not know yet. */
    async putOff({ tenantId, _id }: Place, seenLease: string | undefined): Promise<void> {
      const $set = { unsettledSince: new Date(), ...(seenLease === undefined ? {} : { seenLease }) };
      await jobs.updateOne(ofTenant(tenantId, { _id }), { $set });
    },
  };
}
