import { AppError } from "../errors.ts";
import type { EmbeddingBatchResult } from "../gateway/providers/provider.ts";
import { Rescheduled } from "../jobs/reschedule.ts";
import type { WorkContext } from "../jobs/work.ts";
import type { EmbeddingBatchDocument } from "../store/embedding-batch-store.ts";
import { toSpaceKey } from "../store/vector-space.ts";
import type { RagDeps } from "./deps.ts";
import { EMBED_BATCH, hashInput, toEmbeddingInput } from "./embed-chunks.ts";
import { beginMove, type DocumentMove, findMovable, type Move } from "./move-document.ts";

/** Batches of one move that are at the provider at once. */
const MAX_OPEN = 4;
/** Texts of one batch; OpenAI takes 50,000. A worker reads their vectors in base64, and the texts as one file. */
const MAX_TEXTS = 10_000;
const MAX_VECTOR_BYTES = 64 << 20;
const MAX_CHARACTERS = 32 << 20;
const BASE64_OF_FLOAT = 16 / 3;
const PAGE = 50;
const MAX_SPACES = 20; // as many as a move looks at

/** A move by batches; `onMoved` is called after each document. */
type BatchedMove = Move & { onMoved(): Promise<void> };
/** The documents of one batch that are being written; null for one that is not. */
type Moves = Map<string, Promise<DocumentMove | null>>;
type Embedding = Extract<EmbeddingBatchResult, { result: unknown }>;
type Request = { customId: string; input: string[] };

/**
 * Moves documents by batches of the provider: submits their texts a file at a time, and writes what has come back. What a batch
 * has no vectors for, as when it is refused or expires, is left to the ordinary way; so are documents of more chunks than a
 * batch has room for. Each step is on record, so that another worker can resume at any point.
 * @throws Rescheduled while the provider works on them.
 */
export async function moveByBatches(deps: RagDeps, context: WorkContext, move: BatchedMove): Promise<void> {
  const { tenantId, recordId: owner, signal } = context;
  const { embeddingBatches } = deps.gateway;
  for (const batch of await embeddingBatches.open(tenantId, owner, MAX_OPEN)) {
    const moves: Moves = new Map();
    const seen = new Set<string>();
    await embeddingBatches.advance(batch, signal, async (result) => {
      if ("error" in result || seen.has(result.customId)) return;
      seen.add(result.customId);
      await useResult(deps, context, { move, moves, result });
    });
  }
  await submitMore(deps, context, move);
  const open = await embeddingBatches.open(tenantId, owner, MAX_OPEN);
  if (open.length > 0) throw new Rescheduled(embeddingBatches.pauseFor(open));
}

/** Submits the documents that follow the last batch, while there is room for batches and the provider takes them. */
async function submitMore(deps: RagDeps, { tenantId, recordId: owner, signal }: WorkContext, move: BatchedMove) {
  const { embeddingBatches } = deps.gateway;
  const { keyId, space } = move;
  const caller = { tenantId, keyId, surface: "reindex", signal };
  for (let free = MAX_OPEN - (await embeddingBatches.open(tenantId, owner, MAX_OPEN)).length; free > 0; free -= 1) {
    const last: EmbeddingBatchDocument | null = await embeddingBatches.last(tenantId, owner);
    if (last?.hasFailed) return;
    const { requests, mark } = await gather(deps, tenantId, { move, mark: last?.mark ?? "" });
    if (requests.length === 0) return;
    const number = (last?.number ?? 0) + 1;
    try {
      await embeddingBatches.submit(caller, { owner, number, mark, model: space.model, requests });
    } catch (error) {
      // Nothing, or less, may be left when the batches have ended; the ordinary way takes smaller parts of a budget.
      if (error instanceof AppError && error.code === "budget_exhausted") return;
      throw error;
    }
  }
}

/** The texts of documents after a mark, as many as one batch has room for, and the mark after them. */
async function gather(deps: RagDeps, tenantId: string, given: { move: BatchedMove; mark: string }) {
  const { space } = given.move;
  const most = Math.min(MAX_TEXTS, Math.floor(MAX_VECTOR_BYTES / (space.dimensions * BASE64_OF_FLOAT)));
  const requests: Request[] = [];
  let { mark } = given;
  let texts = 0;
  let characters = 0;
  for await (const { documentId, at } of documentsAfter(deps, tenantId, given)) {
    const found = await findMovable(deps, tenantId, { documentId, space });
    if (found && found.chunks <= most) {
      const added = await readTexts(deps, found);
      const size = added.flatMap(({ input }) => input).reduce((sum, { length }) => sum + length, 0);
      const isFull = texts + found.chunks > most || characters + size > MAX_CHARACTERS;
      if (isFull && requests.length > 0) break;
      requests.push(...added);
      texts += found.chunks;
      characters += size;
    }
    mark = at;
  }
  return { requests, mark };
}

/** Documents in other spaces, in the order of spaces and ids, after a mark; each with its own. */
async function* documentsAfter(
  { store: { documents } }: RagDeps,
  tenantId: string,
  { move: { space }, mark }: { move: BatchedMove; mark: string },
) {
  const [markedSpace = "", markedId = ""] = mark.split("\n");
  for (const from of await documents.spaces(tenantId, MAX_SPACES)) {
    if (from === toSpaceKey(space) || from < markedSpace) continue;
    for (let after = from === markedSpace ? markedId : "", length = PAGE; length === PAGE; ) {
      const page = await documents.idsInSpace(tenantId, { space: from, after, limit: PAGE });
      for (const documentId of page) yield { documentId, at: `${from}\n${documentId}` };
      after = page.at(-1) ?? after;
      length = page.length;
    }
  }
}

/** The calls for the chunks of a document. Each is known by the document, its version and the number of its first chunk. */
async function readTexts({ store }: RagDeps, document: { _id: string; tenantId: string; version: number }) {
  const { _id: documentId, tenantId, version } = document;
  const requests: Request[] = [];
  for (let from = 0, length = EMBED_BATCH; length === EMBED_BATCH; from += length) {
    const stored = await store.chunks.list(tenantId, { documentId, version }, { from, limit: EMBED_BATCH });
    length = stored.length;
    if (length > 0)
      requests.push({ customId: `${documentId}:${version}:${from}`, input: stored.map(toEmbeddingInput) });
  }
  return requests;
}

/**
 * Writes the vectors of one call, and finishes the document when all of its own are there. A document that has changed since,
 * or that was moved by an earlier attempt, is left alone.
 */
async function useResult(
  deps: RagDeps,
  context: WorkContext,
  { move, moves, result: { customId, result } }: { move: BatchedMove; moves: Moves; result: Embedding },
): Promise<void> {
  const [documentId = "", version, from] = customId.split(":");
  const { space } = move;
  const beginning = moves.get(documentId) ?? beginMove(deps, context, { documentId, space, version: Number(version) });
  moves.set(documentId, beginning);
  const begun = await beginning;
  const stored = (await begun?.read(Number(from))) ?? [];
  const { embeddings } = result;
  const made = stored.flatMap((chunk, at) => {
    const embedding = embeddings[at];
    return embedding ? [{ hash: hashInput(toEmbeddingInput(chunk)), embedding }] : [];
  });
  // What does not fit is embedded in the ordinary way, which says what is wrong; the other vectors are found there by their hashes.
  if (!begun || made.length !== embeddings.length || made.length !== stored.length || !begun.fits(made)) return;
  if ((await begun.write(stored, made)) && (await begun.finish())) await move.onMoved();
}
