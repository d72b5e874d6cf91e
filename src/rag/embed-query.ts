import { LRUCache } from "lru-cache";
import type { GatewayCaller } from "../gateway/money/account.ts";
import type { RagDeps } from "./deps.ts";

const CACHED_EMBEDDINGS = 1_000;

/** Makes the function that embeds queries; it caches the vectors of recent ones. */
export function makeEmbedQuery({ gateway }: Pick<RagDeps, "gateway">) {
  const embeddings = new LRUCache<string, Float32Array>({ max: CACHED_EMBEDDINGS });
  return async (caller: GatewayCaller, text: string): Promise<Float32Array> => {
    const key = `${caller.tenantId}\n${text}`;
    const known = embeddings.get(key);
    if (known) return known;
    const [made] = (await gateway.embed(caller, { input: [text] })).embeddings;
    if (!made) throw new TypeError("the gateway gave no embedding for the query");
    embeddings.set(key, made);
    return made;
  };
}
