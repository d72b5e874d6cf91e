import { collectDefaultMetrics, Registry } from "prom-client";
import { type CallMetrics, makeCallMetrics } from "./call-metrics.ts";
import { type FleetMetrics, makeFleetMetrics } from "./fleet-metrics.ts";
import { type HttpMetrics, makeHttpMetrics } from "./http-metrics.ts";
import { type JobMetrics, makeJobMetrics } from "./job-metrics.ts";

/**
 * What a process counts about itself, in Prometheus' terms. Labels come from sets that are known beforehand: routes, queues,
 * catalogued models, states. No id, tenant, key, surface or text of a client is one.
 */
export type Metrics = {
  http: HttpMetrics;
  jobs: JobMetrics;
  calls: CallMetrics;
  fleet: FleetMetrics;
  /** Adds memory, CPU, garbage collection and event loop delay, under the names that dashboards for Node expect. */
  watchProcess(): void;
  /** The metrics in Prometheus' text format 0.0.4. */
  render(): Promise<{ contentType: string; text: string }>;
};

export function makeMetrics(): Metrics {
  const registry = new Registry();
  return {
    http: makeHttpMetrics(registry),
    jobs: makeJobMetrics(registry),
    calls: makeCallMetrics(registry),
    fleet: makeFleetMetrics(registry),
    watchProcess: () => collectDefaultMetrics({ register: registry }),
    render: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}
