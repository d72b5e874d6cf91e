import { stemmer } from "stemmer";
import { weightOfStem } from "../../../lib/common-words.ts";

/** Marks that NFKD splits off Latin, Greek and Cyrillic letters. */
const accents = /[\u0300-\u036f]/g;

const SEPARATOR = 1;
const LETTER = 2;
/** A letter of a script that puts no spaces between words. */
const UNSPACED = 3;

/** Kinds of UTF-16 code units, filled in as they are met; 0: not met yet. */
const kinds = new Uint8Array(65_536);

/**
 * Calls `use` with each word of a text in order: lower case, without accents. Scripts without spaces give overlapping pairs
 * of characters. Characters beyond the basic plane (emoji, rare ideographs) part words.
 */
function forEachWord(text: string, use: (word: string) => void): void {
  const plain = fold(text);
  let start = -1;
  let before = SEPARATOR;
  for (let at = 0; at <= plain.length; at += 1) {
    const kind = at < plain.length ? kindOf(plain.charCodeAt(at)) : SEPARATOR;
    if (start >= 0 && kind !== LETTER) {
      use(plain.slice(start, at));
      start = -1;
    } else if (start < 0 && kind === LETTER) {
      start = at;
    }
    if (kind === UNSPACED) {
      const isPair = kindOf(plain.charCodeAt(at + 1)) === UNSPACED;
      if (isPair || before !== UNSPACED) use(plain.slice(at, at + (isPair ? 2 : 1)));
    }
    before = kind;
  }
}

function fold(text: string): string {
  const lower = text.toLowerCase();
  return isAscii(lower) ? lower : lower.normalize("NFKD").replace(accents, "").normalize("NFC");
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 127) return false;
  return true;
}

function kindOf(code: number): number {
  return kinds[code] || learnKind(code);
}

function learnKind(code: number): number {
  const character = String.fromCharCode(code);
  const isUnspaced =
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
  const kind = isUnspaced.test(character) ? UNSPACED : /[\p{L}\p{N}\p{M}]/u.test(character) ? LETTER : SEPARATOR;
  kinds[code] = kind;
  return kind;
}

/** Name of the built-in embedding in the catalogue and on stored chunks. */
export const offlineEmbeddingModelId = "switchyard-offline-embedding";
const offlineEmbeddingDimensions = 512;

/** A passage begins with its title, heading or topic: its first words count this many times. */
const LEAD_WORDS = 25;
const LEAD_WEIGHT = 3;
/** What the pieces of a word weigh together, beside the word: they bring spellings, endings and compounds near. */
const PIECES_WEIGHT = 2;
const PIECE_LENGTH = 4;
const SHORTEST_IN_PIECES = 3;
const LONGEST_WORD = 40;
const NUMBER_WEIGHT = 0.5;
/** Words whose features are remembered; when the memory is full it is emptied, which changes no result. */
const MAX_REMEMBERED = 30_000;

/** What the forms of one stem add to a vector: hashes (whose lowest bit is the sign) of the stem, then of its pieces. */
type Stem = { hashes: number[]; weight: number; pieceWeight: number /** In the text at hand. */; count: number };

/**
 * Embeds texts without a model: stems of words and their pieces are hashed into signed features (feature hashing,
 * Weinberger 2009), weighted by how rare the word is in general English and by the square root of its count, and the vector
 * is brought to length 1. Only shared words and spellings bring texts near; the same text gives the same vector everywhere.
 */
export function embedOffline(texts: readonly string[], dimensions = offlineEmbeddingDimensions): Float32Array[] {
  return texts.map((text) => embedText(text, dimensions));
}

function embedText(text: string, dimensions: number): Float32Array {
  forgetWhenFull();
  const stems: Stem[] = [];
  let words = 0;
  forEachWord(text, (word) => {
    const stem = stemOf(word);
    if (stem.count === 0) stems.push(stem);
    stem.count += words < LEAD_WORDS ? LEAD_WEIGHT : 1;
    words += 1;
  });
  if (sums.length !== dimensions) sums = new Float64Array(dimensions);
  sums.fill(0);
  for (const stem of stems) {
    addStem(sums, stem);
    stem.count = 0;
  }
  return toUnitLength(sums);
}

/** The vector of the text at hand: an array for each text would be most of the garbage of an ingestion. */
let sums = new Float64Array(offlineEmbeddingDimensions);

function addStem(vector: Float64Array, { hashes, weight, pieceWeight, count }: Stem): void {
  const size = vector.length;
  const repeated = Math.sqrt(count);
  let value = weight * repeated;
  for (const hash of hashes) {
    const slot = (hash >> 1) % size;
    vector[slot] = (vector[slot] ?? 0) + (hash & 1 ? value : -value);
    value = pieceWeight * repeated;
  }
}

/** A text without words has a direction too, so that no vector is all zeros. */
function toUnitLength(sums: Float64Array): Float32Array {
  let squares = 0;
  for (let at = 0; at < sums.length; at += 1) squares += (sums[at] ?? 0) ** 2;
  const vector = new Float32Array(sums.length);
  if (squares === 0) vector[0] = 1;
  const scale = squares === 0 ? 0 : 1 / Math.sqrt(squares);
  for (let at = 0; squares > 0 && at < sums.length; at += 1) vector[at] = (sums[at] ?? 0) * scale;
  return vector;
}

const byWord = new Map<string, Stem>();
const byStem = new Map<string, Stem>();

function stemOf(whole: string): Stem {
  const word = whole.length > LONGEST_WORD ? whole.slice(0, LONGEST_WORD) : whole;
  const known = byWord.get(word);
  if (known) return known;
  const copy = Buffer.from(word).toString(); // a slice would keep its whole text in memory
  const stem = stemmer(copy);
  const made = byStem.get(stem) ?? makeStem(stem);
  byStem.set(stem, made);
  byWord.set(copy, made);
  return made;
}

/** Between texts alone: within one, every form of a stem has to count for the same. */
function forgetWhenFull(): void {
  if (byWord.size < MAX_REMEMBERED) return;
  byWord.clear();
  byStem.clear();
}

function makeStem(stem: string): Stem {
  const isNumber = /^\p{N}/u.test(stem);
  const weight = weightOfStem(stem) * (isNumber ? NUMBER_WEIGHT : 1);
  const framed = `_${stem}_`;
  const count = stem.length < SHORTEST_IN_PIECES ? 0 : framed.length - PIECE_LENGTH + 1;
  const pieces = Array.from({ length: count }, (_, at) => `#${framed.slice(at, at + PIECE_LENGTH)}`);
  return {
    hashes: [stem, ...pieces].map(hash),
    weight,
    pieceWeight: (weight * PIECES_WEIGHT) / Math.sqrt(count || 1),
    count: 0,
  };
}

/** FNV-1a with a final mix (the lowest bits serve as sign and slot), cut to 30 bits, which engines keep as small integers. */
function hash(text: string): number {
  let value = 2_166_136_261;
  for (let i = 0; i < text.length; i += 1) value = Math.imul(value ^ text.charCodeAt(i), 16_777_619);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return ((value ^ (value >>> 16)) >>> 0) & 0x3fffffff;
}
