/** Name of the built-in embedding in the catalogue and on stored chunks. */
export const offlineEmbeddingModelId = "switchyard-offline-embedding";
export const offlineEmbeddingDimensions = 512;

/**
 * Embeds texts without a model: words and their pieces are hashed into signed features (feature hashing, Weinberger 2009)
 * and the vector is brought to length 1. The same text gives the same vector on every machine.
 */
export function embedOffline(texts: readonly string[], dimensions = offlineEmbeddingDimensions): Float32Array[] {
  return texts.map((text) => embedText(text, dimensions));
}

function embedText(text: string, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions);
  const counts = new Map<string, number>();
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const [word, count] of counts) {
    const weight = (1 + Math.log(count)) * Math.min(1, word.length / 5);
    add(vector, word, weight);
    if (word.length > 5) add(vector, `^${word.slice(0, 5)}`, weight * 0.7);
  }
  let squares = 0;
  for (const value of vector) squares += value * value;
  if (squares === 0) vector[0] = 1;
  else for (let i = 0; i < dimensions; i += 1) vector[i] = (vector[i] ?? 0) / Math.sqrt(squares);
  return vector;
}

function add(vector: Float32Array, feature: string, weight: number): void {
  let hash = 2_166_136_261;
  for (let i = 0; i < feature.length; i += 1) hash = Math.imul(hash ^ feature.charCodeAt(i), 16_777_619);
  const slot = (hash >>> 1) % vector.length;
  vector[slot] = (vector[slot] ?? 0) + (hash & 1 ? weight : -weight);
}
