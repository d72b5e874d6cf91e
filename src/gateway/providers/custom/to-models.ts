import { defined } from "../../../lib/defined.ts";
import type { CustomModelRecord, CustomProviderDocument } from "../../../store/custom-provider-store.ts";
import type { CataloguedModel } from "../../catalogue.ts";
import { chats, type ProviderModel } from "../model.ts";
import { type WireName, wires } from "../wires.ts";

/** The models of a custom provider in the catalogue's form; `reach` is absent where its key cannot be read. */
export function toCustomModels(record: CustomProviderDocument, reach: CataloguedModel["reach"]): CataloguedModel[] {
  return record.models.map((model) => toCustomModel(record, model, reach));
}

function toCustomModel(
  { name: provider, wire, updatedAt }: CustomProviderDocument,
  model: CustomModelRecord,
  reach: CataloguedModel["reach"],
): CataloguedModel {
  const { id, type, contextWindow } = model;
  const common = wires[wire as WireName].models; // as the schema let it in, here and below
  const hasChats = chats(model);
  const price = {
    input: model.inputUsdPerMTok,
    output: model.outputUsdPerMTok,
    cached: model.cachedInputUsdPerMTok,
    cacheWrite: model.cacheWriteUsdPerMTok,
  };
  return defined({
    id: `${provider}/${id}`,
    wireId: id,
    provider,
    name: model.name ?? id,
    type,
    contextWindow,
    maxOutput: hasChats ? (model.maxOutput ?? contextWindow) : 0,
    price: defined(price),
    ...(hasChats ? common : { features: [], settings: [] }),
    ...(defined({ features: model.supportedFeatures, efforts: model.reasoningEfforts }) as Partial<ProviderModel>),
    priceSource: "set by your tenant",
    priceDate: updatedAt.toISOString().slice(0, 10),
    reach,
  });
}
