import { expect } from "chai";
import { encodeTime } from "ulidx";
import { makeDocumentSample } from "../../src/store/document-sample.ts";
import { useStore } from "../support/use-store.ts";

const MINUTE = 60_000;
const YEAR = 365 * 24 * 60 * MINUTE;

describe("the sample of a collection's documents", () => {
  const db = useStore();
  let made = 0;
  const idAt = (ms: number) => {
    made += 1;
    return `doc_${encodeTime(Date.UTC(2026, 0, 1) + ms, 10)}${made.toString().padStart(16, "0")}`;
  };
  const insert = async (tenantId: string, times: readonly number[]) => {
    const records = times.map((ms) => ({ _id: idAt(ms), tenantId, status: "indexed", version: 1 }));
    await db().collection<{ _id: string }>("documents").insertMany(records);
    return records.map(({ _id }) => _id);
  };
  const open = () => makeDocumentSample(db().collection("documents"));
  const asked = { collections: undefined, count: 24 };

  it("is all of them if there are few, however unevenly they came", async () => {
    const ids = await insert("few", [0, 1, 2, 3, 4, YEAR]);
    const found = await open().fewIndexed("few", asked);
    expect(found?.map(({ _id }) => _id).toSorted()).to.deep.equal(ids);
    expect(await open().fewIndexed("none", asked)).to.deep.equal([]);
  });

  it("is spread over a load of a minute that one document followed a year later", async () => {
    const ids = await insert("burst", [...Array.from({ length: 400 }, (_, n) => (n * MINUTE) / 400), YEAR]);
    expect(await open().fewIndexed("burst", asked)).to.equal(undefined);
    const places = (await open().sample("burst", asked)).map(({ _id }) => ids.indexOf(_id)).toSorted((a, b) => a - b);
    expect(places).to.have.lengthOf.within(24, 25);
    expect(places.at(-1)).to.equal(400);
    for (const quarter of [0, 100, 200, 300])
      expect(places.filter((at) => at >= quarter && at < quarter + 100)).to.have.lengthOf.at.least(3);
  });

  it("ends where many documents have the time of one another", async () => {
    await insert("moment", [...new Array<number>(30).fill(0), ...new Array<number>(30).fill(1)]);
    expect(await open().sample("moment", asked)).to.have.lengthOf.within(2, 25);
  });
});
