import { readFileSync } from "node:fs";
import { stemmer } from "stemmer";

/** Name of the built-in embedding in the catalogue and on stored chunks. */
export const offlineEmbeddingModelId = "switchyard-offline-embedding";
export const offlineEmbeddingDimensions = 512;

/** How fast further occurrences of a word in a text stop counting (as BM25's k1). */
const SATURATION = 3;
/** The commonest word weighs this part of one that is not on the list, and the weight of the others grows this fast. */
const LEAST_WEIGHT = 0.05;
const WEIGHT_POWER = 3;
/** What the pieces of a word weigh together, beside the word: they bring spellings and compounds near. */
const PIECES_WEIGHT = 0.5;
const PIECE_LENGTH = 4;
/** Words whose features are remembered, and the longest word that is one. */
const MAX_REMEMBERED = 50_000;
const MAX_WORD = 40;

/** Slots with what to add to each (negative for one half of all features), for one word seen once. */
type Features = { slots: Int32Array; values: Float32Array };

/**
 * Embeds texts without a model: stems of words and their pieces are hashed into signed features (feature hashing,
 * Weinberger 2009), weighted by how rare the word is in general English, and the vector is brought to length 1. Only shared
 * words and spellings bring texts near. The same text gives the same vector on every machine.
 */
export function embedOffline(texts: readonly string[], dimensions = offlineEmbeddingDimensions): Float32Array[] {
  const featuresOf = rememberedFeatures(dimensions);
  return texts.map((text) => embedText(text, dimensions, featuresOf));
}

function embedText(text: string, dimensions: number, featuresOf: (word: string) => Features): Float32Array {
  const vector = new Float32Array(dimensions);
  const counts = new Map<Features, number>();
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) {
    const features = featuresOf(word);
    counts.set(features, (counts.get(features) ?? 0) + 1);
  }
  for (const [{ slots, values }, count] of counts) {
    const weight = (count * (SATURATION + 1)) / (count + SATURATION);
    for (let i = 0; i < slots.length; i += 1) {
      const slot = slots[i] ?? 0;
      vector[slot] = (vector[slot] ?? 0) + weight * (values[i] ?? 0);
    }
  }
  return toUnitLength(vector);
}

/** A text without words, too, has a direction of its own, so that no vector is all zeros. */
function toUnitLength(vector: Float32Array): Float32Array {
  let squares = 0;
  for (const value of vector) squares += value * value;
  const length = Math.sqrt(squares);
  if (length === 0) vector[0] = 1;
  else for (let i = 0; i < vector.length; i += 1) vector[i] = (vector[i] ?? 0) / length;
  return vector;
}

const remembered = new Map<number, Map<string, Features>>();

/** The features of words, of which the latest many are remembered: forms of one stem share theirs. */
function rememberedFeatures(dimensions: number): (word: string) => Features {
  const byWord = remembered.get(dimensions) ?? new Map<string, Features>();
  remembered.set(dimensions, byWord);
  return (word) => {
    const known = byWord.get(word);
    if (known) return known;
    if (byWord.size > MAX_REMEMBERED) byWord.clear();
    const stem = stemmer(word.slice(0, MAX_WORD));
    const features = byWord.get(`=${stem}`) ?? makeFeatures(stem, dimensions);
    byWord.set(`=${stem}`, features).set(word, features);
    return features;
  };
}

function makeFeatures(stem: string, dimensions: number): Features {
  const weight = weightOf(stem);
  const framed = `^${stem}$`;
  const count = stem.length > 3 ? framed.length - PIECE_LENGTH + 1 : 0;
  const pieces = Array.from({ length: count }, (_, at) => `#${framed.slice(at, at + PIECE_LENGTH)}`);
  const hashes = [stem, ...pieces].map(hash);
  const pieceWeight = (weight * PIECES_WEIGHT) / Math.sqrt(count || 1);
  return {
    slots: Int32Array.from(hashes, (value) => (value >>> 1) % dimensions),
    values: Float32Array.from(hashes, (value, at) => (value & 1 ? 1 : -1) * (at === 0 ? weight : pieceWeight)),
  };
}

let ranks: Map<string, number> | undefined;

/** How much a stem says: little for the commonest words of English, 1 for those that are not among them. */
function weightOf(stem: string): number {
  ranks ??= readRanks();
  const rank = ranks.get(stem);
  if (rank === undefined) return 1;
  return Math.max(LEAST_WEIGHT, Math.log(1 + rank) / Math.log(1 + ranks.size)) ** WEIGHT_POWER;
}

/** The stems of common-words.txt by rank: 8,000 words of English text on the web, the commonest first. */
function readRanks(): Map<string, number> {
  const words = readFileSync(new URL("./common-words.txt", import.meta.url), "utf8").split(/\s+/);
  const stems = [...new Set(words.filter((word) => word.length > 0).map((word) => stemmer(word)))];
  return new Map(stems.map((stem, rank) => [stem, rank]));
}

/** FNV-1a with a final mix, so that the lowest bits are as good as the others. */
function hash(text: string): number {
  let value = 2_166_136_261;
  for (let i = 0; i < text.length; i += 1) value = Math.imul(value ^ text.charCodeAt(i), 16_777_619);
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (value ^ (value >>> 12)) >>> 0;
}
