import { expect } from "chai";
import { newId } from "../../src/lib/ids.ts";
import { makeUsageStore, usageCollection } from "../../src/store/usage-store.ts";
import { useStore } from "../support/use-store.ts";

const day = "2026-11-20";
const counters = { requests: 2, errors: 1, inputTokens: 30, outputTokens: 7, costNanoUsd: 5 };
const one = { tenantId: "ten_keys", day, model: "m", surface: "api", keyId: "key_1", ...counters };

describe("what is counted by key", () => {
  const db = useStore();

  it("is summed by key, beside what an earlier release counted without one, and a record of that counts once", async () => {
    const { tenantId, model, surface } = one;
    const log = newId("log");
    const ulid = log.slice(log.indexOf("_") + 1);
    const _id = JSON.stringify([tenantId, day, model, surface, `${ulid.slice(0, 7)}${ulid.at(-1)}`]);
    const earlier = { _id, tenantId, day, model, surface, ...counters, costNanoUsd: 0, records: [log] };
    await db().collection<typeof earlier>(usageCollection.name).insertOne(earlier);
    const usage = makeUsageStore(db());
    await usage.add({ writer: "wa", number: 1 }, [one, { ...one, keyId: "key_2", costNanoUsd: 1 }]);
    await usage.addRecord(log, one);
    await usage.addRecord(newId("log"), { ...one, keyId: "key_2" });
    const rows = await usage.sum(tenantId, { from: day, to: day, groupBy: "key" });
    expect(rows.map(({ group, requests, costNanoUsd }) => [group, requests, costNanoUsd])).to.deep.equal([
      ["key_2", 4, 6],
      ["key_1", 2, 5],
      ["unknown", 2, 0],
    ]);
  });
});
