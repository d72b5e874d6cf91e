import { collectDefaultMetrics, Registry } from "prom-client";
import type { Inspection } from "../health.ts";
import { makeCallMetrics } from "./call-metrics.ts";
import { instrumentsOf } from "./instruments.ts";
import { makeJobMetrics } from "./job-metrics.ts";

export type Metrics = ReturnType<typeof makeMetrics>;

/**
 * What a process counts about itself, in Prometheus' terms. Labels come from sets that are known beforehand: routes, queues,
 * catalogued models, states. No id, tenant, key, surface or text of a client is one. `isCustomProvider`: whether a provider is a
 * tenant's own.
 */
export function makeMetrics({ isCustomProvider }: { isCustomProvider: (provider: string) => boolean }) {
  const registry = new Registry();
  return {
    http: makeHttpMetrics(registry),
    jobs: makeJobMetrics(registry),
    calls: makeCallMetrics(registry, isCustomProvider),
    fleet: makeFleetMetrics(registry),
    /** Adds memory, CPU, garbage collection and event loop delay, under the names that dashboards for Node expect. */
    watchProcess: (): void => collectDefaultMetrics({ register: registry }),
    /** The metrics in Prometheus' text format 0.0.4. */
    render: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}

/** Figures of the whole service, which every process reports alike: aggregate them by `max`, not by `sum`. */
function makeFleetMetrics(registry: Registry) {
  const { gauge } = instrumentsOf(registry);
  const up = gauge("switchyard_part_up", {
    help: "Whether a part of the service responds, as in /readyz: 1 or 0",
    labels: ["part"],
  });
  const jobs = gauge("switchyard_queue_jobs", {
    help: "Jobs of a queue in Redis by state",
    labels: ["queue", "state"],
  });
  const oldest = gauge("switchyard_queue_oldest_waiting_seconds", {
    help: "Age of the oldest job that could run and that no worker has claimed; 0 when none waits",
    labels: ["queue"],
  });
  const workers = gauge("switchyard_queue_workers", {
    help: "Worker processes that take jobs of a queue",
    labels: ["queue"],
  });
  const places = gauge("switchyard_queue_places_per_worker", {
    help: "Jobs of a queue that one of its workers runs at once, on the average; 0 without a worker",
    labels: ["queue"],
  });
  const paused = gauge("switchyard_queue_paused", {
    help: "Whether somebody has paused a queue, so that no worker takes its jobs: 1 or 0",
    labels: ["queue"],
  });
  return {
    set({ readiness, queues }: Inspection): void {
      // Old figures would look like new ones: a part that does not respond has none.
      for (const each of [up, jobs, oldest, workers, places, paused]) each.reset();
      for (const [part, { status }] of Object.entries(readiness.parts)) up.set({ part }, status === "up" ? 1 : 0);
      for (const lag of queues) {
        const { queue } = lag;
        for (const state of ["waiting", "active", "delayed", "failed"] as const) jobs.set({ queue, state }, lag[state]);
        oldest.set({ queue }, lag.oldestWaitingMs / 1_000);
        workers.set({ queue }, lag.workers);
        places.set({ queue }, lag.placesPerWorker);
        paused.set({ queue }, lag.isPaused ? 1 : 0);
      }
    },
  };
}

/** A response that was sent: the pattern of its route, as `/jobs/:id`, never the path with its ids. */
type Sent = { method: string; route: string; status: number; seconds: number };

export type HttpMetrics = ReturnType<typeof makeHttpMetrics>;

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

function makeHttpMetrics(registry: Registry) {
  const { gauge, histogram } = instrumentsOf(registry);
  const duration = histogram("switchyard_http_request_duration_seconds", {
    help: "Time from a request's head to the end of its response, streams included; 499 is a client that disconnected",
    labels: ["method", "route", "status"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
  });
  let inFlight = 0; // a number: the library would look its labels up, twice a request
  gauge("switchyard_http_requests_in_flight", {
    help: "Requests that are being served",
    collect() {
      this.set(inFlight);
    },
  });
  return {
    entered(): void {
      inFlight += 1;
    },
    left({ method, route, status, seconds }: Sent): void {
      inFlight -= 1;
      duration.observe({ method: methods.has(method) ? method : "other", route, status }, seconds);
    },
  };
}
