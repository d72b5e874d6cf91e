/** Passages that are taken to be relevant: the first ones that share the query's words. */
const FEEDBACK_PASSAGES = 2;

/**
 * The query's vector moved towards the passages that match its words best: Rocchio's method with pseudo-relevance feedback
 * (Rocchio 1971), both parts weighing the same. A short query says little to an embedding of words; with what a first
 * search found, the vector search finds passages that say the same in other words.
 */
export function withFeedback(query: Float32Array, passages: readonly Float32Array[]): Float32Array {
  const used = passages.filter((passage) => passage.length === query.length).slice(0, FEEDBACK_PASSAGES);
  if (used.length === 0) return query;
  const mean = new Float32Array(query.length);
  for (const passage of used) for (const [at, value] of passage.entries()) mean[at] = (mean[at] ?? 0) + value;
  const [queryLength, meanLength] = [lengthOf(query), lengthOf(mean)];
  return query.map((value, at) => value / queryLength + (mean[at] ?? 0) / meanLength);
}

/** Length of a vector; 1 for a vector of zeros, which has no direction to keep. */
function lengthOf(vector: Float32Array): number {
  return Math.hypot(...vector) || 1;
}
