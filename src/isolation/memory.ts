import { readFileSync } from "node:fs";

/** Memory that the children of a process have together, in MB: the largest one, and a small one beside it for other tenants. */
const CHILDREN_MB = 800;

/** One who starts children: `endIdle` ends one that serves nobody, if there is one. */
export type MemoryUser = { endIdle(): boolean };

export type Memory = ReturnType<typeof makeMemory>;

/**
 * The memory that the children of a process have together. A child counts with its bound, from before its start until its
 * end, so that the bounds of all that run never exceed `totalMb`; one with a larger bound runs alone. Who comes first is
 * first, so that a large one gets its turn, and idle children end for who waits.
 */
export function makeMemory(totalMb = CHILDREN_MB) {
  type Waiting = { user: MemoryUser; mb: number; resolve(): void };
  const waiting: Waiting[] = [];
  const users = new Set<MemoryUser>();
  let heldMb = 0;

  const fits = (mb: number) => heldMb === 0 || heldMb + mb <= totalMb;
  const admit = () => {
    for (let first = waiting[0]; first && fits(first.mb); first = waiting[0]) {
      waiting.shift();
      heldMb += first.mb;
      first.resolve();
    }
    if (waiting.length > 0) [...users].some((user) => user.endIdle()); // its end admits who waits, or ends the next one
  };
  return {
    /** The sum of the bounds of the children that run, in MB. */
    heldMb: () => heldMb,
    /** Whether a child could start without waiting. */
    hasRoom: (mb: number) => waiting.length === 0 && fits(mb),
    /** Whether somebody else than this user is the next to start a child. */
    isWanted: (user: MemoryUser) => waiting[0] !== undefined && waiting[0].user !== user,
    /** Waits until there is memory for a child of `user`, and returns how it is given back once the child has ended. */
    async enter(user: MemoryUser, mb: number): Promise<() => void> {
      users.add(user);
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ user, mb, resolve });
      admit();
      await promise;
      return () => {
        heldMb -= mb;
        admit();
      };
    },
  };
}

/** The resident memory of a process, in MB; undefined if the system does not say, or the process has ended. */
export function residentMb(pid: number | undefined): number | undefined {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) / 1_024;
  } catch {
    return undefined;
  }
}
