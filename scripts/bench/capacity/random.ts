import { seededRandom } from "../measure.ts";

export type Random = ReturnType<typeof makeRandom>;

/** Random numbers of the simulation's distributions; the same ones for the same seed. */
export function makeRandom(seed: number) {
  const uniform = seededRandom(seed);
  const exponential = (mean: number) => -Math.log(1 - uniform()) * mean;
  /** Of mean 0 and variance 1, by Box and Muller. */
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return {
    /** From 0 to 1, without 1. */
    uniform,
    exponential,
    /** Of a mean, and the variance as a multiple of its square: 1 is exponential, 0 is always the mean. */
    spread(mean: number, squaredVariation: number): number {
      if (squaredVariation <= 0 || mean <= 0) return mean;
      if (squaredVariation === 1) return exponential(mean);
      return gamma(1 / squaredVariation, { uniform, normal }) * mean * squaredVariation;
    },
  };
}

/** A gamma variable of scale 1, by Marsaglia and Tsang, https://dl.acm.org/doi/10.1145/358407.358414 */
function gamma(shape: number, random: { uniform: () => number; normal: () => number }): number {
  if (shape < 1) return gamma(shape + 1, random) * random.uniform() ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = random.normal();
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
  }
}
