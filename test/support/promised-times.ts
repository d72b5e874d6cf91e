/** Longest time until a request is answered, with 503, while the store or Redis is unavailable, in ms. */
export const rejectedWithinMs = 5_000;

/** Longest time until a cancelled job has stopped, in ms. The promise is 2 s; the rest is for a busy machine. */
export const cancelledWithinMs = 5_000;
