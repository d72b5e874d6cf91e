import { franc } from "franc-min";
import { LRUCache } from "lru-cache";
import { forEachConcurrent } from "../lib/for-each-concurrent.ts";
import type { CollectionNames } from "../store/collection-filter.ts";
import type { SampledDocument } from "../store/document-sample.ts";
import type { RagDeps } from "./deps.ts";

/** Documents that are looked at, the chunks of each, and how many at a time. */
const SAMPLED = 24;
const CHUNKS = [1, 2];
const READS_IN_FLIGHT = 4;
/** How long it is remembered which documents of large collections are looked at, in ms, and of how many collections. */
const REMEMBERED_MS = 60_000;
const REMEMBERED = 1_000;
/** Documents whose language is remembered; a version of a document never changes. */
const REMEMBERED_DOCUMENTS = 20_000;
const MAX_LANGUAGES = 6;
/** Of many documents, a language is of so many at least: code and tables look like any language. */
const MANY = 20;
const LEAST = 2;
/** Languages that documents are written in; others are guessed of tables and code more often than met. */
const only =
  "eng deu fra spa ita por nld pol ces swe dan nob nno fin hun ron ell rus ukr bul srp hrv tur arb heb pes hin ben tha vie ind jpn cmn kor".split(
    " ",
  );

/** Makes what tells in which languages the documents of some collections are, the most frequent first, by their English names. */
export function makeLanguages({ store }: Pick<RagDeps, "store">) {
  const names = new Intl.DisplayNames(["en"], { type: "language" });
  const samples = new LRUCache<string, Promise<SampledDocument[]>>({ max: REMEMBERED, ttl: REMEMBERED_MS });
  const known = new LRUCache<string, string>({ max: REMEMBERED_DOCUMENTS });

  const sample = (tenantId: string, collections: CollectionNames): Promise<SampledDocument[]> => {
    const key = `${tenantId}\n${collections?.toSorted().join("\n") ?? "*"}`;
    const found = samples.get(key) ?? store.documents.sample(tenantId, { collections, count: SAMPLED });
    if (!samples.has(key)) samples.set(key, found);
    found.catch(() => samples.delete(key)); // the next query asks again
    return found;
  };
  const languageOf = async (tenantId: string, { _id: documentId, version }: SampledDocument): Promise<string> => {
    const key = `${documentId}:${version}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const chunks = await store.chunks.numbered(tenantId, { documentId, version }, CHUNKS);
    const read = chunks.length > 0 ? chunks : await store.chunks.numbered(tenantId, { documentId, version }, [0]);
    const language = franc(read.map(({ content }) => content).join("\n"), { only });
    if (read.length > 0) known.set(key, language);
    return language;
  };
  return async (tenantId: string, collections: CollectionNames): Promise<string[]> => {
    const few = await store.documents.fewIndexed(tenantId, { collections, count: SAMPLED });
    const sampled = few ?? (await sample(tenantId, collections));
    const counts = new Map<string, number>();
    await forEachConcurrent(sampled.values(), READS_IN_FLIGHT, async (document) => {
      const language = await languageOf(tenantId, document);
      if (language !== "und") counts.set(language, (counts.get(language) ?? 0) + 1);
    });
    const sorted = [...counts].sort(([, a], [, b]) => b - a);
    const least = sampled.length < MANY ? 1 : LEAST;
    const kept = sorted.filter(([, count], at) => at === 0 || count >= least).slice(0, MAX_LANGUAGES);
    return kept.map(([code]) => names.of(code) ?? code);
  };
}
