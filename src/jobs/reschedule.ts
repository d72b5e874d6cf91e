import { Pause } from "../lib/errors.ts";

/**
 * Thrown by the work of a job to be run again later. It is neither a failure nor an attempt. `state` is the job's until then:
 * `queued` of one that yields or tries again, `awaiting` of one that needs what others do, as a provider's batch.
 */
export class Rescheduled extends Pause {
  override name = "Rescheduled";
  /** How long to wait, in ms. */
  readonly afterMs: number;
  readonly state: "queued" | "awaiting";

  constructor(afterMs: number, state: "queued" | "awaiting" = "awaiting") {
    super(`to be run again in ${Math.round(afterMs)} ms`);
    this.afterMs = afterMs;
    this.state = state;
  }
}

/**
 * Thrown by the work of a job that waits for something which others bring about, for days perhaps: neither a worker nor Redis
 * holds anything for it until `jobs.resume`. `isOver` is asked once the job waits, since what it waits for may have come before.
 */
export class Suspended extends Pause {
  override name = "Suspended";
  readonly isOver: () => Promise<boolean>;

  constructor(isOver: () => Promise<boolean>) {
    super("to be resumed");
    this.isOver = isOver;
  }
}
