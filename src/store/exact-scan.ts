import type { Binary } from "mongodb";
import type { ChunkHit } from "./chunk.ts";

/** A chunk with its vector, as a scan reads it. */
export type Scored = Omit<ChunkHit, "similarity"> & { embedding: Binary };

/** (1 + cosine) / 2, as Atlas scores; 0.5 where a vector is all zeros. */
export function similarity(a: Float32Array, b: Float32Array): number {
  let dot = 0;
  let normA = 0;
  let normB = 0;
  for (let index = 0; index < a.length; index += 1) {
    const x = a[index] ?? 0;
    const y = b[index] ?? 0;
    dot += x * y;
    normA += x * x;
    normB += y * y;
  }
  const norm = Math.sqrt(normA * normB);
  return norm === 0 ? 0.5 : (1 + dot / norm) / 2;
}

/** A hit with the similarity that ranks it, which is another one if the search has a vector of its own. */
export type RankedHit = ChunkHit & { rank: number };

/** The `limit` chunks nearest to the vector, best first, keeping no more than twice as many at a time. */
export async function scanVectors(
  chunks: AsyncIterable<Scored> | Iterable<Scored>,
  { vector, scoreBy, limit }: { vector: Float32Array; scoreBy?: Float32Array; limit: number },
): Promise<RankedHit[]> {
  let best: RankedHit[] = [];
  const prune = () => {
    best = best.sort((a, b) => b.rank - a.rank).slice(0, limit);
  };
  for await (const { embedding, ...chunk } of chunks) {
    const floats = embedding.toFloat32Array();
    if (floats.length !== vector.length) continue; // made by another model: not comparable
    const rank = similarity(vector, floats);
    best.push({ ...chunk, rank, similarity: scoreBy ? similarity(scoreBy, floats) : rank });
    if (best.length >= 2 * limit + 64) prune();
  }
  prune();
  return best;
}

const K1 = 1.2; // BM25's usual constants: how fast repeats of a word stop counting,
const B = 0.75; // and how much long texts are held back

/** The chunks that share words with the query, in title, content or codes, by BM25 over these chunks alone, best first. */
export function scanText<T extends { title: string; content: string; codes?: string }>(
  chunks: readonly T[],
  query: string,
): (T & { wordScore: number })[] {
  const wanted = new Set(words(query));
  const texts = chunks.map(({ title, content, codes = "" }) => words(`${title}\n${content}\n${codes}`));
  const average = texts.reduce((sum, text) => sum + text.length, 0) / Math.max(1, texts.length);
  const holders = new Map<string, number>();
  for (const text of texts)
    for (const word of new Set(text)) if (wanted.has(word)) holders.set(word, (holders.get(word) ?? 0) + 1);
  const scoreOf = (text: readonly string[]) => {
    let score = 0;
    for (const [word, count] of holders) {
      const times = text.filter((other) => other === word).length;
      const rarity = Math.log(1 + (texts.length - count + 0.5) / (count + 0.5));
      score += (rarity * times * (K1 + 1)) / (times + K1 * (1 - B + (B * text.length) / average));
    }
    return score;
  };
  return chunks
    .map((chunk, index) => ({ ...chunk, wordScore: scoreOf(texts[index] ?? []) }))
    .filter(({ wordScore }) => wordScore > 0)
    .sort((a, b) => b.wordScore - a.wordScore);
}

function words(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}
