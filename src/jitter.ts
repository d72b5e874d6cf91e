/** A wait in ms of which the last `share` is random, so that those who wait for the same thing do not come back together. */
export function jittered(ms: number, { share = 0.5, random = Math.random } = {}): number {
  return ms * (1 - share * random());
}
