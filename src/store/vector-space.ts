/** Vectors of one model and one length: only those of the same space can be compared. */
export type VectorSpace = { model: string; dimensions: number };

/** A space as documents keep it and an index orders it: the model first, as `text-embedding-3-small:1536`. */
export const toSpaceKey = ({ model, dimensions }: VectorSpace): string => `${model}:${dimensions}`;

/** The space of a key; a model's name may hold colons itself. */
export function readSpaceKey(key: string): VectorSpace {
  const end = key.lastIndexOf(":");
  return { model: key.slice(0, end), dimensions: Number(key.slice(end + 1)) };
}
