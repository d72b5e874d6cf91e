import { AppError } from "../errors.ts";
import type { Breaker } from "./breaker.ts";
import type { Catalogue } from "./catalogue.ts";
import type { Ledger } from "./ledger.ts";
import type { CataloguedModel } from "./models-data.ts";
import type { CallContext, Provider, ProviderId } from "./providers/provider.ts";

/** What the gateway's functions work with. */
export type GatewayDeps = {
  catalogue: Catalogue;
  /** Those that can be called. */
  providers: ReadonlyMap<ProviderId, Provider>;
  breakerOf(provider: string, keyId: string): Breaker;
  ledger: Ledger;
  /** Whether the texts of chats are kept in their records. */
  storeContent: boolean;
};

/** The breaker of calls that use the platform's own key. */
const PLATFORM_KEY = "platform";

/** The provider of a routed model, with the breaker that guards it. */
export function providerOf(deps: GatewayDeps, model: CataloguedModel): { provider: Provider; breaker: Breaker } {
  const provider = deps.providers.get(model.provider);
  if (provider === undefined) throw new AppError("provider_not_configured", `${model.provider} is not configured.`);
  return { provider, breaker: deps.breakerOf(model.provider, PLATFORM_KEY) };
}

/** Runs one try of a call through the breaker. */
export async function guarded<T>(breaker: Breaker, attempt: () => Promise<T>): Promise<T> {
  breaker.enter();
  try {
    const result = await attempt();
    breaker.leave();
    return result;
  } catch (error) {
    breaker.leave(error);
    throw error;
  }
}

export const isUsable = (deps: GatewayDeps) => (provider: ProviderId) => deps.providers.has(provider);
export const toContext = (signal: AbortSignal): CallContext => ({ signal });
