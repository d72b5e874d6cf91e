import { readFileSync } from "node:fs";

/** Memory that the children of a process have together, in MB: the largest one, and a small one beside it for other tenants. */
const CHILDREN_MB = 800;
/** The part of it that is kept for children of at most this bound. */
const RESERVED_MB = 200;

/** One who starts children of `mb`: `endIdle` ends one that serves nobody, if there is one. */
type MemoryUser = { mb: number; endIdle(): boolean };

export type Memory = ReturnType<typeof makeMemory>;

/**
 * The memory that the children of a process have together. A child counts with its bound, from before its start until its
 * end, so that the bounds of all that run never exceed `totalMb`; one with a larger bound than what is not reserved runs
 * alone. Who comes first is first, so that a large one gets its turn, and idle children end for who waits. Small ones do not
 * wait in that line for what is reserved: a large document, or a line of such, does not hold up the small ones of others.
 */
export function makeMemory({ totalMb = CHILDREN_MB, reservedMb = RESERVED_MB } = {}) {
  type Waiting = { user: MemoryUser; resolve(): void };
  const waiting: Waiting[] = [];
  const users = new Set<MemoryUser>();
  let smallMb = 0;
  let largeMb = 0;

  const isSmall = ({ mb }: MemoryUser) => mb <= reservedMb;
  const isForAloneNext = () => waiting[0] !== undefined && waiting[0].user.mb > totalMb - reservedMb;
  /** What a child takes of the memory that is not reserved. */
  const takes = (user: MemoryUser) =>
    isSmall(user) ? Math.max(0, smallMb + user.mb - Math.max(smallMb, reservedMb)) : user.mb;
  const fits = (user: MemoryUser) => {
    const taken = largeMb + Math.max(0, smallMb - reservedMb);
    return smallMb + largeMb === 0 || taken + takes(user) <= totalMb - reservedMb;
  };
  const mayPass = (user: MemoryUser) => takes(user) === 0 && !isForAloneNext();
  /** Whether the end of a child of this user gives something to who waits. */
  const isInTheWay = (user: MemoryUser) => !isSmall(user) || smallMb > reservedMb || isForAloneNext();

  const nextToEnter = () => waiting.find(({ user }, place) => fits(user) && (place === 0 || mayPass(user)));
  const admit = () => {
    for (let next = nextToEnter(); next; next = nextToEnter()) {
      waiting.splice(waiting.indexOf(next), 1);
      hold(next.user, next.user.mb);
      next.resolve();
    }
    if (waiting.length > 0) [...users].some((user) => isInTheWay(user) && user.endIdle()); // its end admits who waits, or ends the next one
  };
  const hold = (user: MemoryUser, mb: number) => {
    if (isSmall(user)) smallMb += mb;
    else largeMb += mb;
  };
  return {
    /** The sum of the bounds of the children that run, in MB. */
    heldMb: () => smallMb + largeMb,
    /** Whether a child of `user` could start without waiting. */
    hasRoom: (user: MemoryUser) => fits(user) && (waiting.length === 0 || mayPass(user)),
    /** Whether another user waits for what the children of this one hold. */
    isWanted: (user: MemoryUser) => waiting[0] !== undefined && waiting[0].user !== user && isInTheWay(user),
    /** Waits until there is memory for a child of `user`, and returns how it is given back once the child has ended. */
    async enter(user: MemoryUser): Promise<() => void> {
      users.add(user);
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ user, resolve });
      admit();
      await promise;
      return () => {
        hold(user, -user.mb);
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
