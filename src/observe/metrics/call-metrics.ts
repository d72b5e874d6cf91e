import type { Registry } from "prom-client";
import { instrumentsOf } from "./instruments.ts";

/** What is counted of a model call that was settled. */
type SettledCall = {
  provider: string;
  model: string;
  kind: string;
  outcome: string;
  attempts: number;
  durationMs: number;
  firstTokenMs?: number;
  inputTokens: number;
  outputTokens: number;
  costNanoUsd: number;
  isCached: boolean;
  isBatched?: boolean;
};

export type CallMetrics = ReturnType<typeof makeCallMetrics>;

const NANO = 1e9;
/** Stands for the providers and models of tenants, whose names are no labels. */
const CUSTOM = "custom";

/**
 * Metrics of model calls. Their labels come from the catalogue and the ledger. `isCustom`: whether a provider is a tenant's own,
 * whose name is no label.
 */
export function makeCallMetrics(registry: Registry, isCustom: (provider: string) => boolean) {
  const labelOf = (provider: string) => (isCustom(provider) ? CUSTOM : provider);
  const { counter, gauge, histogram } = instrumentsOf(registry);
  const countMoney = makeMoneyMetrics(registry, labelOf);
  const duration = histogram("switchyard_gateway_call_duration_seconds", {
    help: "Time of a model call to a provider, retries included, until the end of its response",
    labels: ["provider", "kind", "outcome"],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300],
  });
  const firstToken = histogram("switchyard_gateway_first_token_seconds", {
    help: "Time until the first part of a streamed response arrived",
    labels: ["provider"],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60],
  });
  const retries = counter("switchyard_gateway_retries_total", {
    help: "Attempts of a model call after its first",
    labels: ["provider"],
  });
  const refusals = counter("switchyard_budget_refusals_total", {
    help: "Model calls that were refused because their tenant's budget is used up",
  });
  const guarded = counter("switchyard_guard_values_total", {
    help: "Values that guards found in texts, by kind, by place, and by what was done with them",
    labels: ["kind", "place", "action"],
  });
  return {
    /** Guards have found these. */
    guarded: (counts: readonly { kind: string; place: string; action: string; count: number }[]): void => {
      for (const { count, ...labels } of counts) guarded.inc(labels, count);
    },
    /** A model call was settled; its ledger record says how. */
    settled: (call: SettledCall): void => {
      const { kind, outcome } = call;
      const provider = labelOf(call.provider);
      countMoney(call);
      if (call.attempts > 1) retries.inc({ provider }, call.attempts - 1);
      if (sourceOf(call) !== "provider") return; // the time of a cache or a batch says nothing about the provider
      duration.observe({ provider, kind, outcome }, call.durationMs / 1_000);
      if (call.firstTokenMs !== undefined) firstToken.observe({ provider }, call.firstTokenMs / 1_000);
    },
    /** A call was refused, because its tenant's budget is used up. */
    budgetRefused: (): void => refusals.inc(),
    /** Sets where the open breakers of each provider are counted when the metrics are read. */
    watchBreakers: (countOpen: () => ReadonlyMap<string, number>): void => {
      gauge("switchyard_gateway_breakers_open", {
        help: "Breakers that keep calls away from a failing provider; there is one a tenant, provider and key",
        labels: ["provider"],
        collect() {
          this.reset();
          for (const [provider, count] of countOpen()) this.inc({ provider: labelOf(provider) }, count);
        },
      });
    },
  };
}

function makeMoneyMetrics(registry: Registry, labelOf: (provider: string) => string): (call: SettledCall) => void {
  const { counter } = instrumentsOf(registry);
  const calls = counter("switchyard_gateway_calls_total", {
    help: "Model calls by model, outcome, and source of the response: the provider, one of its batches, or our cache",
    labels: ["provider", "model", "kind", "outcome", "source"],
  });
  const tokens = counter("switchyard_gateway_tokens_total", {
    help: "Tokens that providers served",
    labels: ["provider", "model", "direction"],
  });
  const cost = counter("switchyard_gateway_cost_usd_total", {
    help: "Cost of model calls by the catalogue's prices, in USD",
    labels: ["provider", "model"],
  });
  return function countMoney(call) {
    const { kind, outcome } = call;
    const provider = labelOf(call.provider);
    const model = provider === CUSTOM ? CUSTOM : call.model;
    calls.inc({ provider, model, kind, outcome, source: sourceOf(call) });
    if (call.isCached) return;
    tokens.inc({ provider, model, direction: "input" }, call.inputTokens);
    tokens.inc({ provider, model, direction: "output" }, call.outputTokens);
    cost.inc({ provider, model }, call.costNanoUsd / NANO);
  };
}

function sourceOf({ isCached, isBatched }: SettledCall): "cache" | "batch" | "provider" {
  if (isCached) return "cache";
  return isBatched === true ? "batch" : "provider";
}
