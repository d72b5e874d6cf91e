import { readFile } from "node:fs/promises";

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
  for (const pid of await pidsBelow(String(process.pid))) {
    const [command, status] = [await read(pid, "cmdline"), await read(pid, "status")];
    const kind = kinds.find(([, pattern]) => pattern.test(command))?.[0];
    const residentMb = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1_024;
    if (kind) peaks[kind] = Math.max(peaks[kind], residentMb);
  }
}

/** The processes that one started, and those that they started. */
async function pidsBelow(pid: string): Promise<string[]> {
  const children = (await read(pid, `task/${pid}/children`)).split(" ").filter(Boolean);
  return [...children, ...(await Promise.all(children.map(pidsBelow))).flat()];
}

/** A file of a process; nothing of one that has ended meanwhile. */
const read = (pid: string, file: string) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "");
