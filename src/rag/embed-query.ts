import { LRUCache } from "lru-cache";
import type { GatewayCaller } from "../gateway/money/account.ts";
import { AppError } from "../lib/errors.ts";
import { readSpaceKey, type VectorSpace } from "../store/vector-space.ts";
import type { RagDeps } from "./deps.ts";

const CACHED_EMBEDDINGS = 1_000;
/** Maximum spaces that a query searches by vectors. Documents of further spaces are found by words. */
export const MAX_SPACES = 4;
/** Number of spaces that are read: one more, to see whether further spaces exist. */
export const MOST_READ_SPACES = MAX_SPACES + 1;
/** How long a query waits for a model that documents were embedded by before the present one, in ms. */
const FORMER_TIMEOUT_MS = 10_000;

/** A query's vector, for the documents of one space. */
export type QueryVector = VectorSpace & {
  vector: Float32Array;
  /** Whether the tenant has documents of other models with vectors of this length. */
  isLengthShared: boolean;
};

/**
 * The vectors of a query, with the present model's last, and warnings about models by whose vectors the query could not search.
 */
export type QueryVectors = { vectors: QueryVector[]; warnings: string[] };

type EmbedDeps = Pick<RagDeps, "store" | "gateway" | "embeddingModels" | "logger">;

/**
 * Makes the function that embeds a query once for each model of the tenant's documents. The models are remembered from the last
 * query, so that a query need not wait for them. `inUse` says whether they are still right.
 */
export function makeEmbedQuery({ store, gateway, embeddingModels, logger }: EmbedDeps) {
  const known = new LRUCache<string, Float32Array>({ max: CACHED_EMBEDDINGS });
  const remembered = new LRUCache<string, readonly string[]>({ max: CACHED_EMBEDDINGS });
  const embedBy = async (caller: GatewayCaller, model: string, text: string): Promise<Float32Array> => {
    const key = `${caller.tenantId}\n${model}\n${text}`;
    const found = known.get(key);
    if (found) return found;
    const [vector] = (await gateway.embed(caller, { model, input: [text], isGuarded: true })).embeddings;
    if (!vector) throw new TypeError("the gateway gave no embedding for the query");
    known.set(key, vector);
    return vector;
  };
  const embedByFormer = async (caller: GatewayCaller, model: string, text: string) => {
    const signal = AbortSignal.any([caller.signal, AbortSignal.timeout(FORMER_TIMEOUT_MS)]);
    try {
      return await embedBy({ ...caller, signal }, model, text);
    } catch (error) {
      caller.signal.throwIfAborted();
      logger.warn({ err: error, tenantId: caller.tenantId, model }, "documents of a model are found by words alone");
      return error instanceof AppError ? error.message : "it did not answer in time";
    }
  };
  /** The spaces of a tenant's documents now, unless they have been read already. */
  const inUse = async (tenantId: string, read?: readonly string[]): Promise<readonly string[]> => {
    const spaces = read ?? (await store.documents.spaces(tenantId, MOST_READ_SPACES));
    remembered.set(tenantId, spaces);
    return spaces;
  };
  return {
    inUse,
    /** The spaces of the last query. */
    lastInUse: async (tenantId: string) => remembered.get(tenantId) ?? inUse(tenantId),
    /**
     * Makes what embeds one query for the documents of some spaces. Each model is asked once, however often the query searches:
     * one that failed is not waited for again. Where a former model fails, or makes vectors of another length by now, its
     * documents have no vector to be searched by.
     * @throws AppError as `gateway.embed` does, for the present model.
     */
    forQuery(caller: GatewayCaller, text: string) {
      const asked = new Map<string, Promise<Float32Array | string>>();
      const ask = (model: string, isPresent: boolean) => {
        const asking = asked.get(model) ?? (isPresent ? embedBy : embedByFormer)(caller, model, text);
        asked.set(model, asking);
        return asking;
      };
      return async (keys: readonly string[]): Promise<QueryVectors> => {
        const present = await embeddingModels.find(caller.tenantId);
        const isFormer = ({ model }: VectorSpace) => model !== present;
        const all = keys.map(readSpaceKey);
        const spaces = [...all.filter(isFormer).slice(-MAX_SPACES), ...all.filter((space) => !isFormer(space))];
        const searched = spaces.slice(-MAX_SPACES);
        const models = [...new Set(searched.map(({ model }) => model))];
        const made = await Promise.all(models.map((model) => ask(model, model === present)));
        const madeBy = new Map(models.map((model, at) => [model, made[at]]));
        const warnings = searched.length < keys.length ? [tooMany(keys.length)] : [];
        const found: QueryVector[] = [];
        for (const space of searched) {
          const vector = madeBy.get(space.model) ?? "";
          const isLengthShared = all.some((one) => one.dimensions === space.dimensions && one.model !== space.model);
          if (typeof vector === "string") warnings.push(`${foundByWords(space)}: ${vector}`);
          else if (vector.length === space.dimensions) found.push({ ...space, vector, isLengthShared });
          else warnings.push(`${foundByWords(space)}: it makes vectors of ${vector.length} dimensions now.`);
        }
        return { vectors: found, warnings };
      };
    },
  };
}

const foundByWords = ({ model, dimensions }: VectorSpace) =>
  `Documents that ${model} embedded in ${dimensions} dimensions are found by their words alone`;

const tooMany = (count: number) =>
  `Documents are embedded by ${count > MAX_SPACES ? `more than ${MAX_SPACES}` : count} models; those of ${MAX_SPACES} are searched by meaning, the others by their words alone: POST /rag/reindex moves all to one.`;
