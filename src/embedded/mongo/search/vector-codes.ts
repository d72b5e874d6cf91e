const largest = 127;

/** The scale by which all numbers of a vector of length 1 fit into 8 bits, and those that are larger by a part, `room`. */
export function scaleFor(vector: Float32Array, room = 0): number {
  let most = 0;
  for (let at = 0; at < vector.length; at++) most = Math.max(most, Math.abs(vector[at] ?? 0));
  return largest / Math.min(1, most * (1 + room));
}

/** Writes a vector with 8 bits a number, each times the scale. Returns the length of what is lost. */
export function encodeVector(vector: Float32Array, scale: number, code: Int8Array): number {
  let square = 0;
  for (let at = 0; at < vector.length; at++) {
    const value = vector[at] ?? 0;
    const step = Math.round(value * scale);
    code[at] = step;
    square += (value - step / scale) ** 2;
  }
  return Math.sqrt(square);
}
