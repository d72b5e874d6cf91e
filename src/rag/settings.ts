import { AppError } from "../lib/errors.ts";
import type { ReindexRecord } from "../store/reindex-store.ts";
import { readSpaceKey, toSpaceKey, type VectorSpace } from "../store/vector-space.ts";
import type { RagDeps } from "./deps.ts";
import { MAX_SPACES } from "./embed-query.ts";
import type { RagSettings, RagSettingsBody } from "./settings-schemas.ts";

type SettingsDeps = Pick<RagDeps, "store" | "gateway" | "embeddingModels">;

/** What a tenant sets for its documents, and by which models they are embedded. */
export async function viewSettings(deps: SettingsDeps, tenantId: string): Promise<RagSettings> {
  const [embeddingModel, spaces, reindex] = await Promise.all([
    deps.embeddingModels.read(tenantId),
    spacesOf(deps, tenantId),
    deps.store.reindexes.findOpen(tenantId),
  ]);
  const models = spaces.map(async (space) => {
    const documents = await deps.store.documents.countInSpace(tenantId, toSpaceKey(space));
    return { ...space, documents, isPresent: space.model === embeddingModel };
  });
  const moving = reindex && { reindex: toMoving(reindex) };
  return { embeddingModel, models: await Promise.all(models), ...moving };
}

const toMoving = ({ jobId, model, moved }: ReindexRecord) => ({ jobId, model, moved });

/**
 * Sets the model by which documents are embedded from now on. Those that are there stay as they are, and are found.
 * @throws AppError `unknown_model`, `provider_not_configured`; `wrong_state` when they are embedded by too many models already.
 */
export async function changeSettings(
  deps: SettingsDeps,
  tenantId: string,
  { embeddingModel: wanted }: RagSettingsBody,
): Promise<RagSettings> {
  const name = wanted ?? deps.embeddingModels.platformModel;
  const model = await deps.gateway.checkEmbeddingModel(tenantId, name, "embeddingModel");
  const spaces = await spacesOf(deps, tenantId);
  if (spaces.length >= MAX_SPACES && !spaces.some((space) => space.model === model)) throw tooManySpaces(spaces);
  await deps.embeddingModels.set(tenantId, wanted === null ? null : model);
  return viewSettings(deps, tenantId);
}

/** How the documents of tenants that chose no model are searched, in one line. */
export function describeSearch({ gateway, embeddingModels: { platformModel } }: SettingsDeps): string {
  const isSemantic = gateway.isSemantic(platformModel);
  if (isSemantic === undefined)
    return `Search: documents cannot be embedded, since there is no embedding model ${platformModel} (EMBEDDING_MODEL).`;
  if (isSemantic) return `Search is semantic: documents are embedded by ${platformModel}.`;
  return "Search is by words and parts of words only, not by meaning: set EMBEDDING_MODEL or EDGE_EMBEDDING_MODEL to change that.";
}

async function spacesOf({ store }: SettingsDeps, tenantId: string): Promise<VectorSpace[]> {
  return (await store.documents.spaces(tenantId, 2 * MAX_SPACES)).map(readSpaceKey);
}

function tooManySpaces(spaces: readonly VectorSpace[]): AppError {
  const names = spaces.map(({ model, dimensions }) => `${model} (${dimensions} dimensions)`).join(", ");
  const message = `Your documents are embedded by ${spaces.length} models, ${names}, and a query can search ${MAX_SPACES}. Move them with POST /rag/reindex first.`;
  return new AppError("wrong_state", message, { param: "embeddingModel" });
}
