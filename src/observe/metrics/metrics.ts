import { collectDefaultMetrics, Registry } from "prom-client";
import { makeCallMetrics } from "./call-metrics.ts";
import { makeFleetMetrics } from "./fleet-metrics.ts";
import { makeHttpMetrics } from "./http-metrics.ts";
import { makeJobMetrics } from "./job-metrics.ts";

/**
 * What a process counts about itself, in Prometheus' terms. Labels come from sets that are known beforehand: routes, queues,
 * catalogued models, states. No id, tenant, key, surface or text of a client is one.
 */
export function makeMetrics() {
  const registry = new Registry();
  return {
    http: makeHttpMetrics(registry),
    jobs: makeJobMetrics(registry),
    calls: makeCallMetrics(registry),
    fleet: makeFleetMetrics(registry),
    /** Adds memory, CPU, garbage collection and event loop delay, under the names that dashboards for Node expect. */
    watchProcess: (): void => collectDefaultMetrics({ register: registry }),
    /** The metrics in Prometheus' text format 0.0.4. */
    render: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}
