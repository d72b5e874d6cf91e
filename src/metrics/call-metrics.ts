import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { CompletionDocument } from "../store/completion-store.ts";

export type CallMetrics = {
  /** A model call was settled; its ledger record says how. */
  settled(call: CompletionDocument): void;
  /** A call was refused, because its tenant's budget is used up. */
  budgetRefused(): void;
  /** Where the open breakers of each provider are counted, when somebody looks. */
  watchBreakers(countOpen: () => ReadonlyMap<string, number>): void;
};

const NANO = 1e9;

/** Metrics of model calls. Their labels come from the catalogue and the ledger; a tenant, key or surface is never one. */
export function makeCallMetrics(registry: Registry): CallMetrics {
  const registers = [registry];
  const money = makeMoneyMetrics(registers);
  const duration = new Histogram({
    name: "switchyard_gateway_call_duration_seconds",
    help: "Time of a model call that a provider was asked for, retries included, until the end of its answer",
    labelNames: ["provider", "kind", "outcome"],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300],
    registers,
  });
  const firstToken = new Histogram({
    name: "switchyard_gateway_first_token_seconds",
    help: "Time until the first part of a streamed answer was there",
    labelNames: ["provider"],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60],
    registers,
  });
  const retries = new Counter({
    name: "switchyard_gateway_retries_total",
    help: "Tries of a model call after its first",
    labelNames: ["provider"],
    registers,
  });
  const refusals = new Counter({
    name: "switchyard_budget_refusals_total",
    help: "Model calls that were refused because their tenant's budget is used up",
    registers,
  });
  return {
    settled: (call) => {
      const { provider, kind, outcome } = call;
      money.settled(call);
      if (call.attempts > 1) retries.inc({ provider }, call.attempts - 1);
      if (sourceOf(call) !== "provider") return; // what a cache or a batch took says nothing about the provider
      duration.observe({ provider, kind, outcome }, call.durationMs / 1_000);
      if (call.firstTokenMs !== undefined) firstToken.observe({ provider }, call.firstTokenMs / 1_000);
    },
    budgetRefused: () => refusals.inc(),
    watchBreakers: (countOpen) => {
      new Gauge({
        name: "switchyard_gateway_breakers_open",
        help: "Breakers that keep calls away from a failing provider; there is one a tenant, provider and key",
        labelNames: ["provider"],
        registers,
        collect() {
          for (const [provider, count] of countOpen()) this.set({ provider }, count);
        },
      });
    },
  };
}

function makeMoneyMetrics(registers: Registry[]): Pick<CallMetrics, "settled"> {
  const calls = new Counter({
    name: "switchyard_gateway_calls_total",
    help: "Model calls by model, how they ended, and who answered: the provider, a batch of it, or our cache",
    labelNames: ["provider", "model", "kind", "outcome", "source"],
    registers,
  });
  const tokens = new Counter({
    name: "switchyard_gateway_tokens_total",
    help: "Tokens that providers served",
    labelNames: ["provider", "model", "direction"],
    registers,
  });
  const cost = new Counter({
    name: "switchyard_gateway_cost_usd_total",
    help: "What model calls cost by the catalogue's prices, in USD",
    labelNames: ["provider", "model"],
    registers,
  });
  return {
    settled: (call) => {
      const { provider, model, kind, outcome } = call;
      calls.inc({ provider, model, kind, outcome, source: sourceOf(call) });
      if (call.isCached) return;
      tokens.inc({ provider, model, direction: "input" }, call.inputTokens);
      tokens.inc({ provider, model, direction: "output" }, call.outputTokens);
      cost.inc({ provider, model }, call.costNanoUsd / NANO);
    },
  };
}

function sourceOf({ isCached, isBatched }: CompletionDocument): "cache" | "batch" | "provider" {
  if (isCached) return "cache";
  return isBatched === true ? "batch" : "provider";
}
