import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import { allAttacks } from "./all-attacks.ts";
import { type Field, makeClient } from "./attack.ts";
import { openOutside } from "./outside.ts";

/** What the attacker's process is told: which attack, and where. */
type Order = Pick<Field, "url" | "memberKey"> & { name: string; ownerKey: string; widgetKey: string; attackMs: number };

/** The lowest priority, for where there is no `chrt`. */
const NICENESS = 19;
const CHRT_TIMEOUT_MS = 5_000;

/** An attacker in a process of its own: making hostile bodies would hold up the victim's calls in this one. */
export type Attacker = {
  /** Its tenant's own servers: see Outside. */
  origin: string;
  /** Makes what an attack needs. @throws Error when that cannot be made. */
  prepare(order: Order): Promise<void>;
  /** Attacks for the time of the order. Returns the bytes of all responses. */
  run(): Promise<number>;
  end(): void;
};

/** Starts the attacker's process, before the platform: that must know where the tenant's own servers are. */
export async function startAttacker(): Promise<Attacker> {
  const child = fork(fileURLToPath(import.meta.url), ["--attack"], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  return {
    origin: String(await nextMessage(child)),
    async prepare(order) {
      child.send(order);
      await nextMessage(child);
    },
    async run() {
      child.send("run");
      return Number(await nextMessage(child));
    },
    end: () => void child.kill(),
  };
}

async function nextMessage(child: ChildProcess): Promise<unknown> {
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`the attacker ended with code ${code}`);
  });
  const [message] = (await Promise.race([once(child, "message"), ended])) as [unknown];
  ended.catch(() => undefined);
  return message;
}

/**
 * The attacker's machine is elsewhere in truth, so it has only the processor time that nobody else wants. A process of a low
 * priority alone would still hold up the platform's for some milliseconds each time that one of them has work.
 * https://man7.org/linux/man-pages/man7/sched.7.html (SCHED_IDLE)
 */
function runWhenIdle(): void {
  setPriority(NICENESS);
  const timeout = CHRT_TIMEOUT_MS;
  spawnSync("chrt", ["--all-tasks", "--idle", "--pid", "0", String(process.pid)], { timeout }); // it fails where there is none
}

async function attack(): Promise<void> {
  runWhenIdle();
  const outside = await openOutside();
  process.send?.(outside.origin);
  const [{ name, url, memberKey, ownerKey, widgetKey, attackMs }] = (await once(process, "message")) as [Order];
  const over = new AbortController();
  let answeredBytes = 0;
  const client = (headers: Record<string, string>) =>
    makeClient({
      url,
      headers,
      signal: () => over.signal,
      onAnswer: (bytes) => {
        answeredBytes += bytes;
      },
    });
  const field: Field = {
    url,
    memberKey,
    member: client({ authorization: `Bearer ${memberKey}` }),
    owner: client({ authorization: `Bearer ${ownerKey}` }),
    outside,
    visitor: client({ authorization: `Bearer ${widgetKey}` }),
    anonymous: client({}),
    signal: over.signal,
  };
  const chosen = allAttacks.find((each) => each.name === name);
  await chosen?.prepare?.(field);
  process.send?.("prepared");
  await once(process, "message");
  answeredBytes = 0;
  setTimeout(() => over.abort(), attackMs);
  await chosen?.run(field);
  process.send?.(answeredBytes, () => process.exit(0));
}

if (process.argv[2] === "--attack") await attack();
