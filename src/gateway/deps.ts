import type { makeShares } from "../isolation/shares.ts";
import type { CallTexts } from "../tenancy/call-texts.ts";
import type { Fallbacks } from "../tenancy/fallbacks.ts";
import type { GuardPolicies } from "../tenancy/guard-policies.ts";
import type { ProviderKeys } from "../tenancy/provider-keys.ts";
import type { Catalogue } from "./catalogue.ts";
import type { SchemaChecks } from "./chat/response-format.ts";
import type { Budgets } from "./money/budget.ts";
import type { Ledger } from "./money/ledger.ts";
import type { RunBudgets } from "./money/run-budgets.ts";
import type { CustomProviders } from "./providers/custom/custom-providers.ts";
import type { Provider } from "./providers/provider.ts";
import type { Breakers } from "./resilience/breaker.ts";

/** The dependencies of the gateway's functions. */
export type GatewayDeps = {
  catalogue: Catalogue;
  /** The models of each tenant's own providers. */
  customProviders: Pick<CustomProviders, "find" | "models">;
  /** By id. */
  providers: ReadonlyMap<string, Provider>;
  keys: Pick<ProviderKeys, "find" | "byId">;
  fallbacks: Pick<Fallbacks, "find">;
  breakerOf: Breakers["of"];
  ledger: Ledger;
  budgets: Budgets;
  runBudgets: Pick<RunBudgets, "reserve">;
  schemaChecks: SchemaChecks;
  /** What each tenant wants to be guarded. */
  guards: Pick<GuardPolicies, "forCall" | "masks">;
  /** Whether the texts of a tenant's chats are kept in their records. */
  callTexts: Pick<CallTexts, "areKept">;
  /** The places of streams that have said much, all of which is kept until they end. */
  largeStreams: ReturnType<typeof makeShares>;
  /** Attempts of one call at most, those at fallbacks included. */
  maxAttempts: number;
};
