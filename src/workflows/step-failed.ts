import type { ErrorView } from "../lib/errors.ts";

/** Unwinds steps around one that has failed for good; its record has the error. */
export class StepFailed extends Error {
  override name = "StepFailed";
  readonly error: ErrorView;

  constructor(error: ErrorView) {
    super(error.message);
    this.error = error;
  }
}
