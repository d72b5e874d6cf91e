import { expect } from "chai";
import { daily, steadily } from "../../scripts/bench/capacity/arrivals.ts";
import { makeEventQueue } from "../../scripts/bench/capacity/event-queue.ts";
import type { Machine } from "../../scripts/bench/capacity/machine.ts";
import { makeRandom } from "../../scripts/bench/capacity/random.ts";
import { type Route, simulate } from "../../scripts/bench/capacity/simulate.ts";

const seed = 7;
/** One server, with everything else as given. */
const single = (more: Partial<Machine["stations"][number]> = {}): Machine => ({
  stations: [{ name: "server", threads: 1, ...more }],
});
const route: Route = { accept: [{ station: "server", ms: 1 }] };
const run = (machine: Machine, perSecond: number, more: Partial<Parameters<typeof simulate>[0]> = {}) =>
  simulate({ machine, route, load: steadily(perSecond), seconds: 400, warmUp: 10, seed, ...more });

/** Erlang's formula: the share of arrivals that wait when `servers` are offered `load` erlangs. */
function erlangC(servers: number, load: number): number {
  let term = 1;
  let sum = 1;
  for (let n = 1; n < servers; n += 1) {
    term *= load / n;
    sum += term;
  }
  const last = ((term * load) / servers) * (servers / (servers - load));
  return last / (sum + last);
}

describe("the simulation of capacity", () => {
  it("gives the waits of a queue with one exponential server (M/M/1)", () => {
    for (const load of [0.5, 0.8]) {
      const { accept } = run(single(), load * 1_000);
      expect(accept.mean).to.be.closeTo(1 / (1 - load), 0.06 / (1 - load));
      expect(accept.p99).to.be.closeTo(-Math.log(0.01) / (1 - load), 0.5 / (1 - load)); // times in it are exponential
    }
  });

  it("gives the waits of a server whose work varies less (Pollaczek and Khinchin)", () => {
    for (const variation of [0, 0.25]) {
      const { accept } = run(single({ variation }), 700);
      expect(accept.mean).to.be.closeTo(1 + (0.7 * (1 + variation)) / (2 * 0.3), 0.08);
    }
  });

  it("gives the waits of several servers behind one queue (M/M/c)", () => {
    const workers = 4;
    const machine: Machine = {
      stations: [{ name: "server", threads: workers }],
      slots: { jobs: { station: "server", each: 1 } },
    };
    const jobs: Route = { accept: [], run: { slots: "jobs", visits: [{ station: "server", ms: 1 }] } };
    const { place, run: ran } = run(machine, 3_200, { route: jobs, seconds: 120 });
    const wait = erlangC(workers, 3.2) / (workers - 3.2);
    expect(place.mean).to.be.closeTo(wait, 0.08 * wait);
    expect(ran.mean).to.be.closeTo(wait + 1, 0.08 * (wait + 1));
  });

  it("gives the waits of a server that needs longer after it has slept (Welch)", () => {
    const [rate, wakeMs] = [0.5, 2];
    const { accept } = run(single({ wakeMs }), rate * 1_000);
    // M/M/1 with a set-up of fixed length: E[W] of the plain queue, and the set-up's residual seen by arrivals.
    const setUp = (2 * wakeMs + rate * wakeMs ** 2) / (2 * (1 + rate * wakeMs));
    expect(accept.mean).to.be.closeTo(1 / (1 - rate) + setUp, 0.1);
  });

  it("keeps the utilisation law, and saturates where the largest demand says", () => {
    const two: Route = { accept: [{ station: "server", ms: 1 }, { station: "store", ms: 0.4 }, { waitMs: 5 }] };
    const machine: Machine = { stations: [...single().stations, { name: "store", threads: 1 }] };
    const { utilisation, accept } = run(machine, 600, { route: two, seconds: 100 });
    expect(utilisation.server).to.be.closeTo(0.6, 0.02);
    expect(utilisation.store).to.be.closeTo(0.24, 0.01);
    expect(accept.mean).to.be.closeTo(1 / 0.4 + 0.4 / 0.76 + 5, 0.2); // Jackson: each as if it were alone
    const full = run(machine, 0, { route: two, seconds: 60, load: { callers: 64 } });
    expect(full.acceptedPerSecond).to.be.closeTo(1_000, 20);
    expect(full.utilisation.server).to.be.above(0.99);
  });

  it("shares cores between threads: two that compute on one core take twice as long as on two", () => {
    const split: Route = {
      accept: [
        { station: "server", ms: 0.5 },
        { station: "store", ms: 0.5 },
      ],
    };
    const stations = [
      { name: "server", threads: 1, cores: "all" },
      { name: "store", threads: 1, cores: "all" },
    ];
    const rate = (count: number) =>
      run({ stations, cores: { all: count } }, 0, { route: split, seconds: 30, load: { callers: 32 } })
        .acceptedPerSecond;
    expect(rate(1)).to.be.closeTo(1_000, 30);
    expect(rate(2)).to.be.closeTo(2_000, 100);
  });

  it("lets a thread that needs little interrupt one that computes", () => {
    const stations = [
      { name: "server", threads: 1, cores: "one", variation: 0 },
      { name: "batch", threads: 1, cores: "one", variation: 0 },
    ];
    const both: Route = { accept: [{ station: "server", ms: 0.2 }], behind: [{ station: "batch", ms: 50 }] };
    const { accept, utilisation } = run({ stations, cores: { one: 1 } }, 10, { route: both });
    expect(utilisation.batch).to.be.closeTo(0.5, 0.05);
    expect(accept.p50).to.be.below(1);
    expect(accept.p99).to.be.below(8); // it never waits for the 50 ms, only for slices
  });

  it("counts what pauses take, and waits for them", () => {
    const calm = run(single({ variation: 0 }), 500, { seconds: 100 });
    const paused = run(single({ variation: 0, pause: { everyMs: 20, ms: 4 } }), 500, { seconds: 100 });
    expect(paused.utilisation.server).to.be.closeTo(0.5 * 1.2, 0.02);
    expect(paused.accept.p99).to.be.above(4 * calm.accept.p99);
  });

  it("runs jobs by priority, and no more at once than there are places", () => {
    const machine: Machine = {
      stations: [{ name: "worker", threads: 1 }],
      slots: { jobs: { station: "worker", each: 16 } },
    };
    const waits: Route = { accept: [], run: { slots: "jobs", visits: [{ waitMs: 100 }] } };
    const few = simulate({ machine, route: waits, load: steadily(80), seconds: 60, seed });
    expect(few.place.p50).to.equal(0);
    const many = simulate({ machine, route: waits, load: steadily(200), seconds: 60, seed });
    expect(many.endedPerSecond).to.be.closeTo(160, 1); // Little: 16 places by 100 ms
    expect(many.waiting).to.be.above(2_000);
    // The last to come is the most urgent: half of those that get a place then get it at once.
    const urgent: Route = { accept: [], run: { slots: "jobs", visits: [{ waitMs: 100 }], priority: (n) => -n } };
    const reversed = simulate({ machine, route: urgent, load: steadily(200), seconds: 60, seed });
    expect(reversed.place.p50).to.be.below(50);
    expect(many.place.p50).to.be.above(1_000);
  });

  it("spreads a day's work over a curve with the asked peak", () => {
    const load = daily(86_400_000, { peak: 3, dayS: 100 });
    if (!("perSecond" in load)) throw new Error("a curve has rates");
    const rates = Array.from({ length: 10_000 }, (_, n) => load.perSecond(n / 100));
    expect(rates.reduce((sum, rate) => sum + rate, 0) / rates.length).to.be.closeTo(1_000, 10);
    expect(Math.max(...rates)).to.be.closeTo(3_000, 1);
    const { acceptedPerSecond } = run(single(), 0, { load: daily(8_640_000, { dayS: 50 }), seconds: 200, warmUp: 0 });
    expect(acceptedPerSecond).to.be.closeTo(100, 3);
  });

  it("gives the same result for the same seed, and another for another", () => {
    const [first, again, other] = [seed, seed, seed + 1].map((each) =>
      run(single(), 700, { seconds: 5, warmUp: 0, seed: each }),
    );
    expect(again).to.deep.equal(first);
    expect(other?.accept).to.not.deep.equal(first?.accept);
  });

  it("takes events in the order of their times, and of the same time as they were added", () => {
    const events = makeEventQueue<number>();
    const random = makeRandom(seed);
    const times = Array.from({ length: 500 }, () => Math.floor(random.uniform() * 50));
    for (const [n, at] of times.entries()) events.add(at, n);
    const taken: { at: number; event: number }[] = [];
    for (let next = events.take(); next; next = events.take()) taken.push(next);
    expect(taken).to.have.length(500);
    const sorted = [...times.entries()].sort(([a, x], [b, y]) => x - y || a - b).map(([event, at]) => ({ event, at }));
    expect(taken.map(({ at, event }) => ({ event, at }))).to.deep.equal(sorted);
  });
});
