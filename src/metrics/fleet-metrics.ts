import { Gauge, type Registry } from "prom-client";
import type { Inspection } from "../health.ts";

/** What is the same whichever process tells it: take `max`, not `sum`, over those that do. */
export type FleetMetrics = { set(inspection: Inspection): void };

export function makeFleetMetrics(registry: Registry): FleetMetrics {
  const registers = [registry];
  const up = new Gauge({
    name: "switchyard_part_up",
    help: "Whether a part of the service answers, as /readyz tells it: 1 or 0",
    labelNames: ["part"],
    registers,
  });
  const jobs = new Gauge({
    name: "switchyard_queue_jobs",
    help: "Jobs of a queue in Redis by state",
    labelNames: ["queue", "state"],
    registers,
  });
  const oldest = new Gauge({
    name: "switchyard_queue_oldest_waiting_seconds",
    help: "Age of the oldest job that could run and that no worker has taken; 0 when none waits",
    labelNames: ["queue"],
    registers,
  });
  const workers = new Gauge({
    name: "switchyard_queue_workers",
    help: "Worker processes that take jobs of a queue",
    labelNames: ["queue"],
    registers,
  });
  return {
    set({ readiness, queues }) {
      // Old figures would look like new ones: a part that does not answer has none.
      for (const gauge of [up, jobs, oldest, workers]) gauge.reset();
      for (const [part, { status }] of Object.entries(readiness.parts)) up.set({ part }, status === "up" ? 1 : 0);
      for (const lag of queues) {
        const { queue } = lag;
        for (const state of ["waiting", "active", "delayed", "failed"] as const) jobs.set({ queue, state }, lag[state]);
        oldest.set({ queue }, lag.oldestWaitingMs / 1_000);
        workers.set({ queue }, lag.workers);
      }
    },
  };
}
