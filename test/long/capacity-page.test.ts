import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { readFigures } from "../../scripts/bench/capacity/measured.ts";
import { planAll } from "../../scripts/bench/capacity/plan.ts";
import { compareAll } from "../../scripts/bench/capacity/predict.ts";
import { tablesOf, withTables } from "../../scripts/bench/capacity/tables.ts";

const page = new URL("../../docs/capacity.md", import.meta.url);

describe("the page on capacity", function () {
  this.timeout(60_000); // it simulates some minutes of work

  it("has the tables that the simulation makes of what was measured", async () => {
    const text = await readFile(page, "utf8");
    const made = withTables(text, tablesOf(await readFigures()));
    expect(made, "run `npm run bench -- capacity --parts none --write`").to.equal(text);
  });

  it("rests on a simulation that is within a factor of two of every rate that was measured", async () => {
    const compared = compareAll(await readFigures());
    expect(compared).to.have.length.above(10);
    for (const { measured, predicted } of compared)
      expect(predicted.perSecond / measured.perSecond, `${measured.kind}, ${measured.layout}`).to.be.within(0.5, 2);
  });

  it("plans processes that are not busier than planned, and places for the jobs that wait on models", async () => {
    const plans = planAll(await readFigures());
    for (const { name, shares, apis, workers, placesAtPeak } of plans) {
      expect(shares.api / apis, name).to.be.at.most(0.6);
      if (workers > 0) expect(shares.worker / workers, name).to.be.at.most(0.6);
      expect(placesAtPeak, name).to.be.at.most(workers * 16 * 0.6);
    }
    const agents = plans.find(({ name }) => name.includes("agent runs"));
    expect(agents?.placesAtPeak).to.be.closeTo((3 * 1e6 * 10) / 86_400, 0.1); // Little: three times the mean rate, 10 s each
  });

  it("refuses a page without a table's markers", () => {
    expect(() => withTables("<!-- plan:begin -->", { plan: "" })).to.throw("lacks <!-- plan:begin -->");
  });
});
