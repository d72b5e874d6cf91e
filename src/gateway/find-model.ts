import type { CataloguedModel } from "./catalogue.ts";
import type { GatewayDeps } from "./deps.ts";

/**
 * The model that a name stands for when a tenant uses it: the catalogue's, else one of its custom providers'. A promise only
 * when those must be read.
 */
export function findModel(
  { catalogue, customProviders }: Pick<GatewayDeps, "catalogue" | "customProviders">,
  tenantId: string,
  name: string,
): CataloguedModel | undefined | Promise<CataloguedModel | undefined> {
  return catalogue.find(name) ?? customProviders.find(tenantId, name);
}
