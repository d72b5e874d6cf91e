import { createHash } from "node:crypto";
import type { GatewayCaller } from "../gateway/money/account.ts";
import type { NewChunk } from "../store/chunk-store.ts";
import type { RagDeps } from "./deps.ts";
import type { ChunkText } from "./split.ts";

/** Texts of one embedding request, well below the 2,048 inputs and 300,000 tokens that OpenAI takes. */
export const EMBED_BATCH = 256;

/** What the chunks of one version have in common. */
export type VersionContext = {
  caller: GatewayCaller;
  documentId: string;
  version: number;
  /** Its words count for every passage of the document in searches for words. */
  title: string;
  isLive: boolean;
  /** Whether earlier versions may hold embeddings of the same texts. */
  hasEarlier: boolean;
};

/**
 * Makes storable chunks of passages, numbered from `from`. A passage that an earlier version (or an earlier try of this
 * job) has embedded with the same model keeps that embedding; only the others are asked of the gateway.
 */
export async function embedChunks(
  deps: Pick<RagDeps, "store" | "gateway">,
  context: VersionContext,
  passages: { from: number; texts: readonly ChunkText[] },
): Promise<NewChunk[]> {
  const { caller, documentId, version, title, isLive } = context;
  const model = deps.gateway.defaultEmbeddingModel;
  const inputs = passages.texts.map(toEmbeddingInput);
  const hashes = inputs.map((input) => createHash("sha256").update(input).digest("base64url"));
  const known = context.hasEarlier
    ? await deps.store.chunks.embeddingsByHash(caller.tenantId, { documentId, model, hashes })
    : new Map<string, Float32Array>();
  const missing = inputs.filter((_, index) => !known.has(hashes[index] ?? ""));
  const made = missing.length === 0 ? [] : (await deps.gateway.embed(caller, { input: missing })).embeddings;
  const fresh = made[Symbol.iterator]();
  return passages.texts.map((text, index): NewChunk => {
    const hash = hashes[index] ?? "";
    const embedding = known.get(hash) ?? fresh.next().value;
    if (embedding === undefined) throw new TypeError("the gateway gave fewer embeddings than texts");
    const live = isLive ? { live: true, liveAt: new Date() } : { live: false };
    return { documentId, version, title, n: passages.from + index, ...text, ...live, hash, embedding, model };
  });
}

/** A passage is found by what its headings say, too; the last of them stands in the passage already, as a rule. */
function toEmbeddingInput({ content, heading }: ChunkText): string {
  return heading === undefined || content.startsWith(heading) ? content : `${heading}\n${content}`;
}
