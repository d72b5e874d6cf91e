/** A wait in ms of which the last `share` is random, so that clients that wait for the same thing do not return together. */
export function jittered(ms: number, { share = 0.5, random = Math.random } = {}): number {
  return ms * (1 - share * random());
}
