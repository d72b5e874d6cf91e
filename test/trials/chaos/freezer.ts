import { setTimeout as delay } from "node:timers/promises";

export type Freezer = {
  /** Stops a process in the middle of whatever it does (`SIGSTOP`), and continues it after a while. */
  freeze(pid: number, forMs: number): Promise<void>;
  /** Continues all at once: a process that is frozen when this program ends would stay frozen. */
  thaw(): void;
};

export function makeFreezer(): Freezer {
  const frozen = new Set<number>();
  const goOn = (pid: number) => {
    if (frozen.delete(pid)) process.kill(pid, "SIGCONT");
  };
  return {
    async freeze(pid, forMs) {
      process.kill(pid, "SIGSTOP");
      frozen.add(pid);
      await delay(forMs);
      goOn(pid);
    },
    thaw() {
      for (const pid of frozen) goOn(pid);
    },
  };
}
