import { readdir, readFile } from "node:fs/promises";

/** How often the processes are looked at, in ms. */
const LOOK_EVERY_MS = 100;

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
export function watchMemory(): { stop(): Promise<Peaks> } {
  const peaks: Peaks = { api: 0, worker: 0, store: 0, redis: 0, child: 0 };
  let look = Promise.resolve();
  const timer = setInterval(() => {
    look = look.then(() => lookOnce(peaks));
  }, LOOK_EVERY_MS);
  return {
    async stop() {
      clearInterval(timer);
      await look;
      return peaks;
    },
  };
}

async function lookOnce(peaks: Peaks): Promise<void> {
  const processes = await Promise.all((await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(readProcess));
  const parents = new Map(processes.flatMap((each) => (each ? [[each.pid, each.parent] as const] : [])));
  for (const each of processes) {
    if (!each || !isBelow(each.pid, parents)) continue;
    const kind = kinds.find(([, pattern]) => pattern.test(each.command))?.[0];
    if (kind) peaks[kind] = Math.max(peaks[kind], each.residentMb);
  }
}

function isBelow(pid: number, parents: ReadonlyMap<number, number>): boolean {
  for (let at = parents.get(pid); at !== undefined && at > 1; at = parents.get(at)) if (at === process.pid) return true;
  return false;
}

async function readProcess(name: string) {
  try {
    const [status, command] = await Promise.all([
      readFile(`/proc/${name}/status`, "utf8"),
      readFile(`/proc/${name}/cmdline`, "utf8"),
    ]);
    const number = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
    return { pid: Number(name), parent: number("PPid"), residentMb: number("VmRSS") / 1_024, command };
  } catch {
    return undefined; // it ended while it was looked at
  }
}
