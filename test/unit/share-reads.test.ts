import { expect } from "chai";
import { shareReads } from "../../src/lib/share-reads.ts";

const later = () => new Promise(setImmediate);

describe("shared reads", () => {
  it("are one for all that ask at a time, and one more for all that ask while it runs", async () => {
    const reads: PromiseWithResolvers<number>[] = [];
    const read = shareReads(() => {
      const begun = Promise.withResolvers<number>();
      reads.push(begun);
      return begun.promise;
    });
    const first = [read("ten_a", "job_1"), read("ten_a", "job_1")];
    while (reads.length === 0) await later();
    const second = [read("ten_a", "job_1"), read("ten_a", "job_1"), read("ten_a", "job_1")];
    for (let turn = 0; turn < 3; turn += 1) await later();
    expect(reads, "the next one begins when this one has ended").to.have.lengthOf(1);
    reads[0]?.resolve(1);
    expect(await Promise.all(first)).to.deep.equal([1, 1]);
    while (reads.length === 1) await later();
    reads[1]?.resolve(2);
    expect(await Promise.all(second)).to.deep.equal([2, 2, 2]);
    expect(reads).to.have.lengthOf(2);
  });

  it("are not shared between records, or tenants", async () => {
    const read = shareReads(async (tenantId, id) => `${tenantId} ${id}`);
    const asked = [read("ten_a", "job_1"), read("ten_a", "job_2"), read("ten_b", "job_1")];
    expect(await Promise.all(asked)).to.deep.equal(["ten_a job_1", "ten_a job_2", "ten_b job_1"]);
  });

  it("fail for those who share them alone", async () => {
    let count = 0;
    const read = shareReads(async () => {
      count += 1;
      if (count === 1) throw new Error("lost");
      return count;
    });
    const shared = await Promise.allSettled([read("ten_a", "job_1"), read("ten_a", "job_1")]);
    expect(shared.map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
    expect(await read("ten_a", "job_1")).to.equal(2);
  });
});
