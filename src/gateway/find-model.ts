import type { CataloguedModel } from "./catalogue.ts";
import type { GatewayDeps } from "./deps.ts";

/**
 * The model that a name stands for when a tenant uses it: one of its custom providers', else the catalogue's, in which an edge
 * server may list any name. A promise only when the former must be read.
 */
export function findModel(
  { catalogue, customProviders }: Pick<GatewayDeps, "catalogue" | "customProviders">,
  tenantId: string,
  name: string,
): CataloguedModel | undefined | Promise<CataloguedModel | undefined> {
  const own = customProviders.find(tenantId, name);
  if (own instanceof Promise) return own.then((model) => model ?? catalogue.find(name));
  return own ?? catalogue.find(name);
}
