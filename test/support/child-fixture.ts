import { getPriority } from "node:os";
import { isChild, serveRequests } from "../../src/isolation/serve-requests.ts";
import { AppError } from "../../src/lib/errors.ts";

/** What the child of the pool's tests is asked to do. */
export type Order = {
  act:
    | "count"
    | "spin"
    | "burn"
    | "fill-heap"
    | "fill-buffers"
    | "refuse"
    | "flood"
    | "fill-pipe"
    | "crash"
    | "environment"
    | "hold"
    | "wait"
    | "start-and-spin"
    | "start-and-wait"
    | "start-priority"
    | "pid";
  to?: number;
};

const kept: unknown[] = [];
const startPriority = getPriority();

const sleep = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

const acts: Record<Order["act"], (send: (part: unknown) => void, to: number) => void> = {
  count: (send, to) => {
    for (let n = 1; n <= to; n += 1) send(n);
  },
  spin: () => {
    for (;;) Math.random();
  },
  burn: (_send, to) => {
    const before = process.cpuUsage();
    const usedMs = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1_000;
    while (usedMs(process.cpuUsage(before)) < to);
  },
  "fill-heap": () => {
    for (;;) kept.push(new Array(1_000).fill(Math.random()));
  },
  "fill-buffers": () => {
    for (;;) kept.push(Buffer.alloc(1 << 20, 1));
  },
  hold: (send, to) => {
    kept.push(Buffer.alloc(to << 20, 1));
    sleep(400); // the watchdog has looked
    send(to);
  },
  wait: (send, to) => {
    sleep(to);
    send("waited");
  },
  "start-and-spin": (send) => {
    send("started");
    for (;;) Math.random();
  },
  "start-and-wait": (send, to) => {
    send("started");
    sleep(to);
    send("waited");
  },
  "start-priority": (send) => send(startPriority),
  pid: (send) => send(process.pid),
  "fill-pipe": (send, to) => {
    for (let n = 0; n < to; n += 1) send(Buffer.alloc(1 << 17, 1));
  },
  flood: (send, to) => send(Buffer.alloc(to, 1)),
  refuse: () => {
    throw new AppError("source_unreadable", "It cannot be read.", { param: "file", details: { page: 2 } });
  },
  crash: () => process.exit(7),
  environment: (send) => send(Object.keys(process.env)),
};

if (isChild()) serveRequests<Order, unknown>(({ act, to = 0 }, send) => acts[act](send, to));
