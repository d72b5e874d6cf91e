/** Thrown by the work of a job to be run again later. It is neither a failure nor an attempt. */
export class Postponed extends Error {
  override name = "Postponed";
  /** How long to wait, in ms. */
  readonly afterMs: number;

  constructor(afterMs: number) {
    super(`to be run again in ${Math.round(afterMs)} ms`);
    this.afterMs = afterMs;
  }
}
