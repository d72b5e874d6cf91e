import { createHash } from "node:crypto";
import type { GatewayCaller } from "../gateway/money/account.ts";
import { defined } from "../lib/defined.ts";
import { type ChunkRecord, placeOf, toHeading } from "../store/chunk.ts";
import type { NewChunk } from "../store/chunk-store.ts";
import type { RagDeps } from "./deps.ts";
import { identifierKeys } from "./identifiers.ts";
import type { ChunkText } from "./split.ts";

/** Texts of one embedding request, well below OpenAI's limits of 2,048 inputs and 300,000 tokens. */
export const EMBED_BATCH = 256;

/** The common properties of all chunks of one version. */
export type VersionContext = {
  caller: GatewayCaller;
  /** Model that embeds the chunks. */
  model: string;
  documentId: string;
  collection?: string;
  version: number;
  /** The title of the document. */
  title: string;
  isLive: boolean;
  /** Whether earlier versions may hold embeddings of the same texts. */
  hasEarlier: boolean;
};

/**
 * Makes storable chunks, numbered from `from`. A chunk that an earlier version or attempt embedded with the same model
 * reuses that embedding; the gateway embeds the others.
 */
export async function embedChunks(
  deps: Pick<RagDeps, "store" | "gateway">,
  context: VersionContext,
  { from, texts }: { from: number; texts: readonly ChunkText[] },
): Promise<NewChunk[]> {
  const { model, documentId, collection, version, title, isLive } = context;
  const made = await embedInputs(deps, context, texts.map(toEmbeddingInput));
  return texts.map((text, index): NewChunk => {
    const live = isLive ? { live: true, liveAt: new Date() } : { live: false };
    const path = pathTo(title, text);
    const codes = identifierKeys(`${path}\n${text.content}`).join(" ") || undefined;
    const place = { documentId, ...defined({ collection, codes }), version, title: path, n: from + index };
    return { ...place, ...text, ...live, ...requireMade(made[index]), model };
  });
}

/** A vector with the hash of its text. */
export type Embedded = Pick<NewChunk, "hash" | "embedding">;

/** The vectors of texts of a document, each with the hash by which a later version finds it again. */
export async function embedInputs(
  deps: Pick<RagDeps, "store" | "gateway">,
  about: Pick<VersionContext, "caller" | "model" | "documentId"> & {
    /** Length of vectors that may be reused; absent: all vectors of the model, if they have one length. */
    dimensions?: number;
    hasEarlier?: boolean;
  },
  inputs: readonly string[],
): Promise<Embedded[]> {
  const { caller, model, documentId, dimensions, hasEarlier = true } = about;
  const hashes = inputs.map(hashInput);
  const known = hasEarlier
    ? await deps.store.chunks.embeddingsByHash(caller.tenantId, { documentId, model, hashes })
    : new Map<string, Float32Array>();
  for (const [hash, { length }] of known) if (length !== (dimensions ?? length)) known.delete(hash);
  const missing = inputs.filter((_, index) => !known.has(hashes[index] ?? ""));
  const made =
    missing.length === 0
      ? []
      : (await deps.gateway.embed(caller, { model, input: missing, isGuarded: true })).embeddings;
  const isChanged = known.values().some(({ length }) => length !== (made[0]?.length ?? length));
  if (isChanged) return embedInputs(deps, { ...about, hasEarlier: false }, inputs); // the model made vectors of other lengths before
  const fresh = made[Symbol.iterator]();
  return hashes.map((hash) => requireMade({ hash, embedding: known.get(hash) ?? fresh.next().value }));
}

/** The hash by which a later version finds the vector of a text. */
export const hashInput = (input: string): string => createHash("sha256").update(input).digest("base64url");

function requireMade({ hash, embedding }: { [F in keyof Embedded]?: Embedded[F] | undefined } = {}): Embedded {
  if (hash === undefined || embedding === undefined)
    throw new TypeError("the gateway returned fewer embeddings than texts");
  return { hash, embedding };
}

/** The titles above a chunk. The first heading is often the document's title. */
export function pathTo(title: string, { headings = [] }: Pick<ChunkText, "headings">): string {
  const heading = toHeading(headings);
  return heading === title || heading.startsWith(`${title} > `)
    ? heading
    : [title, heading].filter(Boolean).join(" > ");
}

/** Embeds the headings with the content, so that a query finds them too; often the content begins with them already. */
export function toEmbeddingInput(chunk: Pick<ChunkRecord, "content" | "headings" | "heading">): string {
  const { heading } = placeOf(chunk);
  return heading === undefined || chunk.content.startsWith(heading) ? chunk.content : `${heading}\n${chunk.content}`;
}
