/** What a job may be; docs/architecture.md has the terms. */
export const jobStates = ["queued", "running", "awaiting", "completed", "failed", "cancelled"] as const;
export type JobState = (typeof jobStates)[number];

/** Which states a job may go to from each. A state without successors is final. */
export const jobTransitions = {
  queued: ["running", "cancelled", "failed"],
  running: ["queued", "awaiting", "completed", "failed", "cancelled"],
  awaiting: ["queued", "running", "completed", "failed", "cancelled"],
  completed: [],
  failed: [],
  cancelled: [],
} as const satisfies Record<JobState, readonly JobState[]>;

/** Whether a job in `state` has ended for good. */
export function isFinal(state: JobState): boolean {
  return jobTransitions[state].length === 0;
}

/** The states from which a job may go to `to`; the filter of every compare-and-set on a job's state. */
export function statesBefore(to: JobState): JobState[] {
  return jobStates.filter((from) => (jobTransitions[from] as readonly JobState[]).includes(to));
}

export const openStates = jobStates.filter((state) => !isFinal(state));
export const finalStates = jobStates.filter(isFinal);
