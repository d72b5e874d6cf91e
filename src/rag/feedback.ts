/** The first hits of a lexical search are assumed to be relevant, the second half as much as the first. */
const SHARES = [1, 0.5];
/** The weight of these hits together, relative to the query. */
const FEEDBACK_WEIGHT = 2;

/**
 * Moves the query's vector towards the chunks that match its words best: Rocchio's method with pseudo-relevance feedback
 * (Rocchio 1971). A short query carries little meaning; together with the first hits, the vector search also finds chunks that
 * say the same in other words.
 */
export function withFeedback(query: Float32Array, chunks: readonly Float32Array[]): Float32Array {
  const used = chunks.filter((chunk) => chunk.length === query.length).slice(0, SHARES.length);
  if (used.length === 0) return query;
  const mean = new Float32Array(query.length);
  for (const [place, share] of SHARES.entries())
    for (const [at, value] of used[place]?.entries() ?? []) mean[at] = (mean[at] ?? 0) + share * value;
  const [queryLength, meanLength] = [lengthOf(query), lengthOf(mean)];
  return query.map((value, at) => value / queryLength + (FEEDBACK_WEIGHT * (mean[at] ?? 0)) / meanLength);
}

/** Length of a vector; 1 for a vector of zeros, so that a division keeps it. */
const lengthOf = (vector: Float32Array) => Math.hypot(...vector) || 1;
