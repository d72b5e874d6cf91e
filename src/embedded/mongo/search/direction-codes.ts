const largest = 127;

/**
 * Writes the direction of a vector of length 1 in 8 bits a number, each in relation to the vector's largest. Returns how far
 * the code's direction is from the vector, as the length of their difference at length 1.
 */
export function encodeDirection(vector: Float32Array, code: Int8Array): number {
  let most = 0;
  for (let at = 0; at < vector.length; at++) most = Math.max(most, Math.abs(vector[at] ?? 0));
  let [square, codeSquare, product] = [0, 0, 0];
  for (let at = 0; at < vector.length; at++) {
    const value = vector[at] ?? 0;
    const step = Math.round((value / most) * largest);
    code[at] = step;
    square += value * value;
    codeSquare += step * step;
    product += value * step;
  }
  return Math.sqrt(Math.max(0, 1 + square - (2 * product) / Math.sqrt(codeSquare)));
}
