import { type ChunkRecord, toHeading } from "../store/chunk.ts";
import { blocksOf } from "./parse/markdown-table.ts";
import type { Hit } from "./rank-hits.ts";

export type PassageChunk = Pick<ChunkRecord, "n" | "content" | "headings" | "heading"> & { _id: string };
/** A hit, and the chunks around it that are shown with it, its own among them, in the order of the document. */
export type Passage = { hit: Hit; chunks: PassageChunk[] };

/** Longest passage, in characters, so that hits of a whole document do not become one passage. */
const MAX_PASSAGE = 20_000;
/** Minimum text that two chunks share, in characters. A shorter repetition may be a coincidence. */
const MAX_OVERLAP = 400;
const MIN_OVERLAP = 10;

/**
 * Joins the passages of a document that share a chunk, or that follow each other under the same headings. What is joined has
 * the place and the score of its best hit.
 */
export function mergeHits(passages: readonly Passage[]): Passage[] {
  const rankOf = new Map(passages.map(({ hit }, rank) => [hit._id, rank]));
  const merged: Passage[] = [];
  for (const ofDocument of Map.groupBy(passages, ({ hit }) => hit.documentId).values()) {
    let last: Passage | undefined;
    for (const passage of ofDocument.toSorted((a, b) => firstOf(a) - firstOf(b))) {
      const rest = last ? restOf(last, passage) : passage.chunks;
      if (last && mayJoin(last, passage, rest)) {
        const isBetter = (rankOf.get(passage.hit._id) ?? 0) < (rankOf.get(last.hit._id) ?? 0);
        Object.assign(last, { hit: isBetter ? passage.hit : last.hit, chunks: [...last.chunks, ...rest] });
      } else {
        last = { hit: passage.hit, chunks: [...rest] };
        merged.push(last);
      }
    }
  }
  return merged.sort((a, b) => (rankOf.get(a.hit._id) ?? 0) - (rankOf.get(b.hit._id) ?? 0));
}

const firstOf = ({ chunks: [first] }: Passage) => first?.n ?? 0;
const lastOf = ({ chunks }: Passage) => chunks.at(-1)?.n ?? 0;

/** The chunks of a passage that follow the previous passage. */
function restOf(before: Passage, { chunks }: Passage): PassageChunk[] {
  return chunks.filter(({ n }) => n > lastOf(before));
}

function mayJoin(before: Passage, passage: Passage, rest: readonly PassageChunk[]): boolean {
  if (!rest.some(({ n }) => n === passage.hit.n)) return true; // the previous passage shows its hit already
  if (lengthOf(before.chunks) + lengthOf(rest) > MAX_PASSAGE) return false;
  if (rest.length < passage.chunks.length) return true;
  const [first] = rest;
  const last = before.chunks.at(-1);
  return !!first && !!last && first.n === last.n + 1 && pathOf(first) === pathOf(last);
}

const lengthOf = (chunks: readonly PassageChunk[]) => chunks.reduce((sum, { content }) => sum + content.length, 0);
const pathOf = ({ headings, heading }: PassageChunk) => (headings ? toHeading(headings) : heading);

/** Joins the text of consecutive chunks. Shared text and the repeated head of a table appear once. */
export function joinChunks(chunks: readonly PassageChunk[]): string {
  let joined = "";
  for (const { content } of chunks) joined = joined === "" ? content : append(joined, content);
  return joined;
}

function append(text: string, next: string): string {
  for (let length = Math.min(MAX_OVERLAP, next.length); length >= MIN_OVERLAP; length -= 1) {
    if (text.endsWith(next.slice(0, length))) return text + next.slice(length);
  }
  const [table] = blocksOf(next);
  if (table && "head" in table && text.includes(`${table.head}\n`)) {
    return `${text}${text.endsWith("|") ? "\n" : "\n\n"}${next.slice(table.head.length + 1)}`;
  }
  return `${text}\n\n${next}`;
}
