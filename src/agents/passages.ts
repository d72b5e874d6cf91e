import { defined } from "../lib/defined.ts";
import { makeCiting, sharesSentence } from "../rag/cite.ts";
import { findSentence } from "../rag/quotes.ts";
import type { RunEnd } from "../store/agent-run-store.ts";
import type { AuditPassage } from "../store/audit-store.ts";
import type { Store } from "../store/store.ts";
import type { Observed } from "./iterations.ts";

/** Passages of one run that its answer is compared with: the last ones that it has found. */
const MAX_PASSAGES = 60;
const MAX_HEADING = 500;
/** Share of a sentence's words that a sentence of a passage must have, if no sentence of the answer is found as it is. */
const LIKE = 0.4;

/** A passage that a search gives to the model. */
export type FoundPassage = Pick<AuditPassage, "documentId" | "chunkId" | "title" | "page" | "heading"> & {
  content: string;
};
/** What a search has found, in the order in which its output holds it. */
export type FoundPassages = { query: string; passages: FoundPassage[] };

/** Passages as the audit log has them: with a quote if the model got them as they are. `given`: the output that the model gets. */
export async function toAudited(
  { query, passages }: FoundPassages,
  given: string,
  guard: (text: string) => Promise<string>,
): Promise<AuditPassage[]> {
  let from = 0;
  const audited = passages.map(async ({ content, title, heading, ...place }): Promise<AuditPassage> => {
    const at = given.indexOf(content, from);
    const isGiven = at >= 0;
    if (isGiven) from = at + content.length;
    const quote = isGiven ? findSentence(content, query)?.quote : undefined;
    return {
      ...place,
      title: await guard(title),
      ...(heading === undefined ? {} : { heading: await guard(heading.slice(0, MAX_HEADING)) }),
      ...(quote === undefined ? {} : { quote }),
      ...(isGiven ? { at, length: content.length } : {}),
    };
  });
  return Promise.all(audited);
}

/**
 * What a run's answer rests on: of the passages that the run has found, and all that a run cites which it has called and whose
 * answer it uses. Undefined if neither has searched documents.
 */
export function citeRun(observations: readonly Observed[], answer: string): RunEnd["citations"] {
  const searches = observations.filter(({ citations }) => citations !== undefined);
  if (searches.length === 0) return undefined;
  const [called, own] = [searches.filter(isOfRun), searches.filter((one) => !isOfRun(one))];
  const found = own.flatMap(({ output, citations = [] }) =>
    citations.flatMap(({ at, length, quote: _quote, ...place }) =>
      at === undefined ? [] : [{ ...place, content: output.slice(at, at + (length ?? 0)) }],
    ),
  );
  const passages = [...new Map(found.map((passage) => [passage.chunkId, passage])).values()].slice(-MAX_PASSAGES);
  const citing = makeCiting(passages, []);
  citing.citeUnmarked(answer);
  const used = called.filter(({ output }) => sharesSentence(answer, output, LIKE));
  if (citing.citations().length === 0 && used.length === 0) citing.citeUnmarked(answer, LIKE);
  for (const { citations = [] } of used) for (const { quote, ...place } of citations) citing.add(place, quote ?? "");
  return citing.citations().map((citation) => defined(citation));
}

/** The same with the URLs that their documents were read from. */
export async function withUrls(
  { documents }: { documents: Pick<Store["documents"], "describe"> },
  tenantId: string,
  citations: NonNullable<RunEnd["citations"]>,
): Promise<NonNullable<RunEnd["citations"]>> {
  if (citations.length === 0) return [];
  const known = await documents.describe(tenantId, [...new Set(citations.map(({ documentId }) => documentId))]);
  return citations.map((one) => ({ ...one, ...defined({ url: known.get(one.documentId)?.source.url ?? one.url }) }));
}

const isOfRun = ({ runId }: Observed) => runId !== undefined;
