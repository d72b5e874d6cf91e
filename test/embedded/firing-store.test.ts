import { expect } from "chai";
import { newId } from "../../src/lib/ids.ts";
import { type FiringRecord, makeFiringStore } from "../../src/store/firing-store.ts";
import { useStore } from "../support/use-store.ts";

describe("the firings of a tenant", () => {
  const db = useStore();

  it("are kept up to a number: the newest of all its schedules and triggers, and those that are open", async () => {
    const firings = makeFiringStore(db(), { most: 6, trimEvery: 1 });
    const add = async (tenantId: string, ownerId: string, more: Partial<FiringRecord> = {}) => {
      const now = new Date();
      const jobId = newId("job");
      const about = { _id: jobId.replace("job_", "fir_"), tenantId, ownerId, jobId, attempts: 1 };
      const times = { slotAt: now, createdAt: now, expireAt: new Date(now.getTime() + 86_400_000) };
      return (await firings.ensure({ ...about, ...times, status: "started", ...more }))._id;
    };
    const idsOf = async (tenantId: string, ownerId: string) =>
      (await firings.list(tenantId, ownerId, { limit: 100 })).data.map(({ _id }) => _id);
    const open = await add("ten_a", "sch_1", { status: "waiting", nextAt: new Date() });
    const other = await add("ten_b", "sch_1");
    const ids = { first: [] as string[], second: [] as string[] };
    for (let n = 0; n < 8; n += 1) {
      ids.first.unshift(await add("ten_a", "sch_1"));
      ids.second.unshift(await add("ten_a", "trg_2"));
    }
    expect(await idsOf("ten_a", "sch_1")).to.deep.equal([...ids.first.slice(0, 2), open]);
    expect(await idsOf("ten_a", "trg_2")).to.deep.equal(ids.second.slice(0, 3));
    expect(await idsOf("ten_b", "sch_1")).to.deep.equal([other]);
  });
});
