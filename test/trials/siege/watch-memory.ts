import { readFileSync } from "node:fs";

/** How often the processes are looked at, in ms: Linux keeps the peak of each, so that only one that ends in between is missed. */
const LOOK_EVERY_MS = 500;

/** The largest resident memory of each kind of process, in MB. */
export type Peaks = Record<"api" | "worker" | "store" | "redis" | "child", number>;

const kinds: readonly [keyof Peaks, RegExp][] = [
  ["child", /--serve-requests/],
  ["api", /api\/server\.ts/],
  ["worker", /workers\/main\.ts/],
  ["store", /embedded\/host\.ts/],
  ["redis", /redis-server/],
];

/** Looks at the memory of all processes below this one until it is stopped. */
export function watchMemory({ everyMs = LOOK_EVERY_MS } = {}): { now(): Peaks; stop(): Peaks } {
  const peaks: Peaks = { api: 0, worker: 0, store: 0, redis: 0, child: 0 };
  const kindOf = new Map<string, keyof Peaks>();
  const look = () => {
    for (const pid of pidsBelow(String(process.pid))) {
      const kind = kindOf.get(pid) ?? findKind(pid);
      if (!kind) continue;
      kindOf.set(pid, kind);
      peaks[kind] = Math.max(peaks[kind], peakMbOf(pid));
    }
  };
  const timer = setInterval(look, everyMs);
  return {
    /** The peaks up to now. */
    now() {
      look();
      return { ...peaks };
    },
    stop() {
      clearInterval(timer);
      look();
      return peaks;
    },
  };
}

function findKind(pid: string): keyof Peaks | undefined {
  const command = read(pid, "cmdline");
  return kinds.find(([, pattern]) => pattern.test(command))?.[0];
}

function peakMbOf(pid: string): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(read(pid, "status"))?.[1] ?? 0) / 1_024;
}

/** The processes that one started, and those that they started. */
function pidsBelow(pid: string): string[] {
  const children = read(pid, `task/${pid}/children`).split(" ").filter(Boolean);
  return [...children, ...children.flatMap(pidsBelow)];
}

/** A file of a process; nothing of one that has ended meanwhile. It is in memory, so that reading it waits for nothing. */
function read(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
