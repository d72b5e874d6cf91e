import type { CataloguedModel } from "./catalogue.ts";
import type { GatewayDeps } from "./deps.ts";

/**
 * The model that a name stands for when a tenant uses it: one of its custom providers', else the catalogue's, in which an edge
 * server may list any name.
 */
export async function findModel(
  { catalogue, customProviders }: Pick<GatewayDeps, "catalogue" | "customProviders">,
  tenantId: string,
  name: string,
): Promise<CataloguedModel | undefined> {
  return (await customProviders.find(tenantId, name)) ?? catalogue.find(name);
}
