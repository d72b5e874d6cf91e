import type { Load } from "./simulate.ts";

/** Seconds of a day. */
export const DAY_S = 86_400;

/** The same rate at all times. */
export const steadily = (perSecond: number): Load => ({ perSecond: () => perSecond, mostPerSecond: perSecond });

/**
 * A day's curve: a bell around its middle over an even ground, whose highest rate is `peak` times the mean. `dayS` shortens the
 * day, so that a simulation sees all of it.
 */
export function daily(perDay: number, { peak = 3, dayS = DAY_S }: { peak?: number; dayS?: number } = {}): Load {
  const mean = perDay / DAY_S;
  // A quarter of the mean at night; the width of the bell follows, since all shares of the day sum up to the mean.
  const ground = peak <= 1 ? 1 : 0.25;
  const width = peak <= 1 ? 1 : (1 - ground) / ((peak - ground) * Math.sqrt(2 * Math.PI));
  const shareAt = (at: number) =>
    ground + (Math.max(peak, 1) - ground) * Math.exp(-((at - 0.5) ** 2) / (2 * width ** 2));
  return { perSecond: (seconds) => mean * shareAt((seconds / dayS) % 1), mostPerSecond: mean * Math.max(peak, 1) };
}
