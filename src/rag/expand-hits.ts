import { forEachConcurrent } from "../lib/for-each-concurrent.ts";
import type { RagDeps } from "./deps.ts";
import type { Passage, PassageChunk } from "./merge-hits.ts";
import type { Hit } from "./rank-hits.ts";

/** Maximum neighbours that a query reads, about half a million characters. The neighbours of the best hits are read first. */
const MAX_NEIGHBOURS = 300;
const READS_IN_FLIGHT = 4;

/** Adds to each hit the chunks of its document's version that are next to it, `count` on each side. */
export async function expandHits(
  { store }: Pick<RagDeps, "store">,
  tenantId: string,
  { hits, count }: { hits: readonly Hit[]; count: number },
): Promise<Passage[]> {
  const known = new Map<string, PassageChunk>(hits.map((hit) => [hit._id, hit]));
  const wanted = chooseNeighbours(hits, count);
  await forEachConcurrent(wanted.values(), READS_IN_FLIGHT, async ({ of, numbers }) => {
    for (const chunk of await store.chunks.numbered(tenantId, of, numbers)) known.set(chunk._id, chunk);
  });
  return hits.map((hit) => {
    const around = (step: number) => {
      const found: PassageChunk[] = [];
      for (let at = 1; at <= count; at += 1) {
        const chunk = known.get(idOf(hit, hit.n + at * step));
        if (chunk === undefined) break; // the document ends here, or the limit is reached
        found.push(chunk);
      }
      return found;
    };
    return { hit, chunks: [...around(-1).reverse(), hit, ...around(1)] };
  });
}

const idOf = ({ documentId, version }: Hit, n: number) => `${documentId}:${version}:${n}`;

/** The numbers of the chunks to be read, by document. */
function chooseNeighbours(hits: readonly Hit[], count: number) {
  const chosen = new Map<string, { of: Hit; numbers: number[] }>();
  const seen = new Set(hits.map(({ _id }) => _id));
  let left = count === 0 ? 0 : MAX_NEIGHBOURS;
  for (const hit of hits) {
    for (let n = Math.max(0, hit.n - count); n <= hit.n + count && left > 0; n += 1) {
      const id = idOf(hit, n);
      if (seen.has(id)) continue;
      seen.add(id);
      left -= 1;
      const { numbers } = chosen.get(hit.documentId) ?? { numbers: [] };
      chosen.set(hit.documentId, { of: hit, numbers: [...numbers, n] });
    }
  }
  return chosen;
}
