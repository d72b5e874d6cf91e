import { expect } from "chai";

type Rows = { items: Job[]; next: string | null; pages: number; fresh: string[]; isLoaded: boolean };
type Page = {
  items: Job[];
  after: string | undefined;
  id: string;
  size: number;
  next: string | null;
  isAtTop: boolean;
};
type How = { id: string; size: number; isAtTop: boolean; fits: (job: Job) => boolean };

/** A module of the console, which browsers load as it is. */
const { MAX_FRESH, mergeOne, mergePage, noRows } = (await import(
  new URL("../../api/console/rows.js", import.meta.url).href
)) as {
  MAX_FRESH: number;
  mergeOne: (rows: Rows, job: Job, how: How) => Rows;
  mergePage: (rows: Rows, page: Page) => Rows;
  noRows: (path: string) => Rows;
}; // as its own types say

const size = 3;
const id = "jobId";
type Job = { jobId: string; status?: string };
const jobs = (...ids: string[]): Job[] => ids.map((jobId) => ({ jobId }));
const idsOf = ({ items }: Rows) => items.map(({ jobId }: Job) => jobId).join(" ");
const loaded = (items: Job[], more: Partial<Rows> = {}): Rows => ({
  ...noRows("/jobs"),
  items,
  isLoaded: true,
  ...more,
});
const all = { id, size, fits: () => true };

describe("the rows of a list in the console", () => {
  it("take a change of one where it stands, and nothing else moves", () => {
    const rows = mergeOne(loaded(jobs("c", "b", "a")), { jobId: "b", status: "failed" }, { ...all, isAtTop: false });
    expect(rows.items).to.deep.equal([{ jobId: "c" }, { jobId: "b", status: "failed" }, { jobId: "a" }]);
  });

  it("drop one that fits no more, and take in one that fits now where it belongs", () => {
    const fits = ({ status }: Job) => status === "failed";
    const rows = loaded(jobs("d", "b"));
    expect(idsOf(mergeOne(rows, { jobId: "d", status: "running" }, { ...all, fits, isAtTop: true }))).to.equal("b");
    expect(idsOf(mergeOne(rows, { jobId: "c", status: "failed" }, { ...all, fits, isAtTop: false }))).to.equal("d c b");
  });

  it("show a newer one at once at the top, as many as the pages that were asked for", () => {
    const rows = mergeOne(loaded(jobs("c", "b", "a")), { jobId: "d" }, { ...all, isAtTop: true });
    expect([idsOf(rows), rows.next]).to.deep.equal(["d c b", "b"]);
  });

  it("announce newer ones to who reads below, each once and up to a bound", () => {
    let rows = loaded(jobs("c", "b", "a"));
    for (const jobId of ["d", "e", "d"]) rows = mergeOne(rows, { jobId }, { ...all, isAtTop: false });
    expect([idsOf(rows), rows.fresh]).to.deep.equal(["c b a", ["d", "e"]]);
    for (let n = 0; n < 1_000; n += 1) rows = mergeOne(rows, { jobId: `e${n}` }, { ...all, isAtTop: false });
    expect([idsOf(rows), rows.fresh.length]).to.deep.equal(["c b a", MAX_FRESH]);
  });

  it("leave out one that is older than the pages that were loaded", () => {
    const rows = loaded(jobs("d", "c"), { next: "c" });
    expect(mergeOne(rows, { jobId: "a" }, { ...all, isAtTop: true })).to.equal(rows);
  });

  const page = { after: undefined, id, size, next: "x" };

  it("keep the second page when the first is read again", () => {
    const rows = loaded(jobs("f", "e", "d", "c", "b", "a"), { pages: 2, next: "a" });
    const read = mergePage(rows, { ...page, items: jobs("g", "f", "d"), isAtTop: true });
    expect([idsOf(read), read.next, read.fresh]).to.deep.equal(["g f d c b a", "a", []]);
    const held = mergePage(rows, { ...page, items: jobs("g", "f", "d"), isAtTop: false });
    expect([idsOf(held), held.next, held.fresh]).to.deep.equal(["f d c b a", "a", ["g"]]);
  });

  it("stay as they are when a whole page is newer", () => {
    const rows = loaded(jobs("c", "b"), { next: "b" });
    const held = mergePage(rows, { ...page, items: jobs("g", "f", "e"), isAtTop: false });
    expect([idsOf(held), held.next, held.fresh]).to.deep.equal(["c b", "b", ["g", "f", "e"]]);
  });

  it("take a later page in its place, without those that are gone", () => {
    const rows = loaded(jobs("f", "e", "d", "c", "b", "a"), { pages: 2, next: null });
    const read = mergePage(rows, { ...page, after: "d", next: null, items: jobs("c", "a"), isAtTop: false });
    expect([idsOf(read), read.next]).to.deep.equal(["f e d c a", null]);
  });

  it("go on behind a searched page that holds none of them", () => {
    const first = mergePage(noRows("/jobs"), { ...page, items: [], next: "m", isAtTop: true });
    expect([idsOf(first), first.next, first.isLoaded]).to.deep.equal(["", "m", true]);
    const rows = loaded(jobs("c", "b"), { pages: 2, next: "a" });
    const again = mergePage(rows, { ...page, items: [], next: "m", isAtTop: true });
    expect([idsOf(again), again.next]).to.deep.equal(["c b", "a"]);
  });

  it("end where a first page that is the last one ends", () => {
    const rows = loaded(jobs("c", "b", "a"));
    const read = mergePage(rows, { ...page, next: null, items: jobs("c"), isAtTop: true });
    expect([idsOf(read), read.next]).to.deep.equal(["c", null]);
  });
});
