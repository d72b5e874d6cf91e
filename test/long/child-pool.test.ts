import { readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import { type ChildLost, startChild } from "../../src/isolation/child.ts";
import { type ChildPool, makeChildPool } from "../../src/isolation/child-pool.ts";
import { keepChildren } from "../../src/isolation/children.ts";
import { makeMemory, residentMb } from "../../src/isolation/memory.ts";
import { type AppError, toErrorView } from "../../src/lib/errors.ts";
import type { Order } from "../support/child-fixture.ts";
import { pollUntil } from "../support/poll-until.ts";
import { skipTest } from "../support/skip-test.ts";

const entry = new URL("../support/child-fixture.ts", import.meta.url);

describe("a pool of child processes", function () {
  this.timeout(60_000);
  let pool: ChildPool<Order, unknown>;
  const open = (changed: Partial<Parameters<typeof makeChildPool>[0]> = {}) => {
    pool = makeChildPool({
      entry,
      size: 2,
      perOwner: 1,
      timeoutMs: 10_000,
      memory: { heapMb: 64, rssMb: 200 },
      shared: makeMemory({ totalMb: 2_000 }),
      ...changed,
    });
    return pool;
  };
  afterEach(() => pool?.close()); // one test starts a child by itself

  const run = async (order: Order, { owner = "acme", signal = new AbortController().signal } = {}) => {
    const parts: unknown[] = [];
    for await (const part of pool.run(order, { owner, signal })) parts.push(part);
    return parts;
  };
  /** The priorities of a process' threads, each once; of the process where threads have none of their own. */
  const prioritiesOf = (pid: unknown) => {
    const threads = process.platform === "linux" ? readdirSync(`/proc/${pid}/task`).map(Number) : [Number(pid)];
    return [...new Set(threads.map((thread) => getPriority(thread)))];
  };
  /** Children that keep this process alive, as one that starts and one that works. */
  const starting = () => processes() - others;
  const processes = () => process.getActiveResourcesInfo().filter((kind) => kind === "ProcessWrap").length;
  /** The bounds of all children that have not ended, in MB, as the system knows the processes. */
  const boundsOfAll = () => {
    const pids = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim().split(" ");
    return pids.map(boundOf).reduce((sum, mb) => sum + mb, 0);
  };
  const boundOf = (pid: string) => {
    try {
      return Number(/--serve-requests\0(\d+)/.exec(readFileSync(`/proc/${pid}/cmdline`, "utf8"))?.[1] ?? 0);
    } catch {
      return 0; // it has just ended
    }
  };
  let others = 0;
  before(() => {
    others = processes();
  });
  const lossOf = (order: Order) =>
    run(order).then(
      () => "none",
      (error: ChildLost) => error.reason,
    );

  it("yields what a child sends, in order, and uses the child again", async () => {
    open();
    expect(await run({ act: "count", to: 3 })).to.deep.equal([1, 2, 3]);
    expect(await run({ act: "count", to: 2 })).to.deep.equal([1, 2]);
  });

  it("passes on a child's errors, and the child serves again", async () => {
    open();
    const error = await run({ act: "refuse" }).catch((thrown: AppError) => thrown);
    expect(toErrorView(error)).to.deep.equal({
      type: "invalid_request_error",
      code: "source_unreadable",
      message: "It cannot be read.",
      param: "file",
      details: { page: 2 },
    });
    expect(await run({ act: "count", to: 1 })).to.deep.equal([1]);
  });

  it("kills a child that is busy for too long", async () => {
    open({ timeoutMs: 300 });
    expect(await lossOf({ act: "spin" })).to.equal("time");
    open();
    expect(await run({ act: "count", to: 1 })).to.deep.equal([1]);
  });

  it("ends a child that takes too much memory, in V8's heap or beside it", async () => {
    open();
    expect(await lossOf({ act: "fill-heap" })).to.equal("memory");
    expect(await lossOf({ act: "fill-buffers" })).to.equal("memory");
    expect(await run({ act: "count", to: 1 })).to.deep.equal([1]);
  });

  it("serves a request in a new child when a used one has no memory left for it", async () => {
    open({ memory: { heapMb: 64, rssMb: 500 } }); // a new child has some 100 MB, so each order is 100 MB from the bound
    expect(await run({ act: "hold", to: 200 })).to.deep.equal([200]);
    expect(await run({ act: "hold", to: 300 })).to.deep.equal([300]);
    expect(await lossOf({ act: "hold", to: 500 })).to.equal("memory");
  });

  it("does not count the time in which its own process was frozen", async () => {
    open({ timeoutMs: 1_500 });
    await run({ act: "count", to: 1 });
    const served = run({ act: "wait", to: 150 });
    await new Promise((resolve) => setTimeout(resolve, 50));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
    expect(await served).to.deep.equal(["waited"]);
  });

  it("does not report work as too large when closing the pool ended it", async () => {
    open();
    const parts = pool.run({ act: "start-and-spin" }, { owner: "acme", signal: new AbortController().signal });
    expect(await parts.next()).to.include({ value: "started" });
    const end = parts.next().catch((error: ChildLost) => error.reason);
    pool.close();
    expect(await end).to.equal("crash");
  });

  it("reports a child that ends by itself as a crash", async () => {
    open();
    expect(await lossOf({ act: "crash" })).to.equal("crash");
  });

  it("lets a child be no further ahead than a pipe holds, and does not count its reader's time", async () => {
    open({ timeoutMs: 5_000 });
    const given = { owner: "acme", signal: new AbortController().signal };
    const parts = pool.run({ act: "fill-pipe", to: 3 }, given); // more than it holds, and the work of some ms
    expect((await parts.next()).value).to.have.lengthOf(1 << 17);
    await new Promise((resolve) => setTimeout(resolve, 5_200));
    expect(await Array.fromAsync(parts)).to.have.lengthOf(2);
  });

  it("takes no part that is larger than a host should hold", async () => {
    open();
    const error = await run({ act: "flood", to: 17 << 20 }).catch((thrown: AppError) => thrown);
    expect(error).to.include({ code: "internal" });
    expect(await run({ act: "flood", to: 1 << 20 })).to.have.lengthOf(1);
  });

  it("keeps the environment, and so the service's secrets, from its children", async () => {
    open();
    const [names] = await run({ act: "environment" });
    expect(names).to.not.include("PATH");
    expect(names).to.not.include("HOME");
  });

  it("lets a child come to the end of a request that was left, and uses it again", async () => {
    open();
    const [pid] = await run({ act: "pid" });
    const left = pool.run({ act: "start-and-wait", to: 50 }, { owner: "acme", signal: new AbortController().signal });
    expect((await left.next()).value).to.equal("started");
    await left.return();
    expect(await run({ act: "pid" })).to.deep.equal([pid]);
    const stop = new AbortController();
    const stopped = run({ act: "wait", to: 50 }, { signal: stop.signal }).catch(() => "stopped");
    stop.abort(new Error("enough"));
    expect(await stopped).to.equal("stopped");
    expect(await run({ act: "pid" })).to.deep.equal([pid]);
  });

  it("uses a child that became ready after its first request was left", async () => {
    open({ size: 1 });
    const stop = new AbortController();
    const left = run({ act: "pid" }, { signal: stop.signal }).catch(() => "left");
    await pollUntil(() => starting() === 1, { what: "a child, which starts", everyMs: 1 });
    stop.abort(new Error("enough"));
    expect(await left).to.equal("left");
    await pollUntil(() => starting() === 0, { what: "the start of the child", timeoutMs: 15_000 });
    expect(await run({ act: "pid" })).to.have.lengthOf(1);
  });

  it("lets a request take the first child that is free, also while another one starts for it", async () => {
    open({ perOwner: 2 });
    const [pid] = await run({ act: "pid" });
    const busy = run({ act: "wait", to: 1 });
    expect(await run({ act: "pid" })).to.deep.equal([pid]);
    await busy;
  });

  it("keeps a child ready for others beside one that stays busy, which an owner that has one leaves to them", async () => {
    open({ size: 3, perOwner: 2, hasSpare: true });
    const [first] = await run({ act: "pid" }, { owner: "evil" });
    const stop = new AbortController();
    const busy = run({ act: "wait", to: 60_000 }, { owner: "evil", signal: stop.signal }).catch(() => "stopped");
    await pollUntil(() => starting() === 2, { what: "a second child, which starts", everyMs: 1 });
    await pollUntil(() => starting() === 1, { what: "a second child that is ready", timeoutMs: 15_000 });
    const ends: string[] = [];
    const own = run({ act: "pid" }, { owner: "evil" }).then(() => ends.push("evil"));
    const [other] = await run({ act: "pid" }, { owner: "acme" });
    ends.push("acme");
    await own;
    expect(other).not.to.equal(first);
    expect(ends).to.deep.equal(["acme", "evil"]);
    stop.abort(new Error("enough"));
    expect(await busy).to.equal("stopped");
  });

  it("has a second child ready once two owners work here, which it starts at a lower priority", async () => {
    open({ size: 3, hasSpare: true, busyMs: 60_000 });
    expect(await run({ act: "start-priority" }, { owner: "acme" })).to.deep.equal([getPriority()]);
    const servedBeside = async () => {
      const long = run({ act: "wait", to: 100 }, { owner: "evil" });
      const [priority] = await run({ act: "start-priority" }, { owner: "acme" });
      await long;
      return priority === 5;
    };
    await pollUntil(servedBeside, { what: "a child that started before somebody waited for it", timeoutMs: 15_000 });
  });

  it("starts no further child while one comes back soon", async () => {
    open({ size: 3, hasSpare: true, busyMs: 60_000 });
    const [first] = await run({ act: "pid" });
    await pollUntil(() => starting() === 0, { what: "the end of earlier tests' children" });
    const both = [run({ act: "pid" }, { owner: "acme" }), run({ act: "pid" }, { owner: "evil" })];
    await setImmediate(); // both have asked for a child
    expect(starting(), "children that work or start").to.equal(1);
    expect(await Promise.all(both)).to.deep.equal([[first], [first]]);
  });

  it("gives an owner one child while others work here", async () => {
    open({ size: 3, perOwner: 2 });
    await Promise.all(["acme", "evil"].map((owner) => run({ act: "wait", to: 100 }, { owner }))); // two are there
    const ends: string[] = [];
    const long = run({ act: "wait", to: 300 }, { owner: "evil" }).then(() => ends.push("long"));
    const short = run({ act: "pid" }, { owner: "evil" }).then(() => ends.push("short"));
    await Promise.all([long, short]);
    expect(ends).to.deep.equal(["long", "short"]);
  });

  it("gives a child that has started to an owner without one before owners who have one", async () => {
    const children = keepChildren({ entry, size: 3, memory: { heapMb: 64, rssMb: 200 }, shared: makeMemory() });
    const order: string[] = [];
    const { signal } = new AbortController();
    const takeFor = async (owner: string) => {
      await children.take(owner, signal);
      order.push(owner);
    };
    await Promise.all(["evil", "evil", "acme"].map(takeFor));
    children.close();
    expect(order).to.deep.equal(["evil", "acme", "evil"]);
  });

  it("starts a child that a request waits for at the service's own priority", async () => {
    open({ timeoutMs: 60_000 });
    expect(await run({ act: "start-priority" }, { owner: "acme" })).to.deep.equal([getPriority()]);
  });

  it("serves an owner who used much processor time of late at the lowest priority, by a child of its own", async () => {
    open({ timeoutMs: 60_000 });
    const [ordinary] = await run({ act: "pid" }, { owner: "evil" });
    expect(prioritiesOf(ordinary)).to.deep.equal([5]);
    await run({ act: "burn", to: 400 }, { owner: "evil" });
    const [pid] = await run({ act: "pid" }, { owner: "evil" });
    expect(prioritiesOf(pid)).to.deep.equal([19]);
    expect(await run({ act: "pid" }, { owner: "acme" })).not.to.deep.equal([pid]);
  });

  it("gives one owner its share of the children, and others theirs beside it", async () => {
    open({ timeoutMs: 60_000 }); // so that none of what is busy ends by itself
    const stop = new AbortController();
    const busy = [1, 2].map(() => run({ act: "spin" }, { owner: "evil", signal: stop.signal }).catch(() => "stopped"));
    for (const to of [1, 2]) expect(await run({ act: "count", to }, { owner: "acme" })).to.have.lengthOf(to);
    stop.abort(new Error("enough"));
    expect(await Promise.all(busy)).to.deep.equal(["stopped", "stopped"]);
    expect(await run({ act: "count", to: 1 }, { owner: "evil" })).to.deep.equal([1]);
  });

  it("never runs children whose bounds exceed what all have together, and ends idle ones for others", async function () {
    if (process.platform !== "linux") skipTest(this, "only Linux lists the children of a process");
    await pollUntil(() => boundsOfAll() === 0, { what: "the end of earlier tests' children" });
    const shared = makeMemory({ totalMb: 500, reservedMb: 0 });
    const small = open({ size: 3, perOwner: 3, shared });
    const large = makeChildPool<Order, unknown>({
      entry,
      size: 2,
      perOwner: 2,
      timeoutMs: 10_000,
      memory: { heapMb: 64, rssMb: 400 },
      shared,
    });
    const { signal } = new AbortController();
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, boundsOfAll());
    }, 5);
    const orders = [small, large, small, small, large, small].map((one, n) =>
      Array.fromAsync(one.run({ act: "wait", to: 50 }, { owner: `owner-${n}`, signal })),
    );
    try {
      expect(await Promise.all(orders)).to.deep.equal(Array.from({ length: 6 }, () => ["waited"]));
    } finally {
      clearInterval(watch);
      large.close();
    }
    expect(most).to.be.within(400, 500);
  });

  it("ends a child beyond its resident memory from outside, however little of it is in V8's heap", async function () {
    if (process.platform !== "linux") skipTest(this, "only Linux says how much memory another process has");
    const child = startChild({ entry, memory: { heapMb: 64, rssMb: 30 }, isAwaited: true });
    const pause = new Int32Array(new SharedArrayBuffer(4));
    while ((residentMb(child.process.pid) ?? 0) <= 30) Atomics.wait(pause, 0, 0, 1); // before the bound is looked at here
    child.process.kill("SIGSTOP"); // and nothing in the child can look at it
    const { reason } = await child.lost;
    expect(reason).to.equal("memory");
  });
});
