import type { Registry } from "prom-client";
import { instrumentsOf } from "./instruments.ts";

/** A response that was sent: the pattern of its route, as `/jobs/:id`, never the path with its ids. */
type Sent = { method: string; route: string; status: number; seconds: number };

export type HttpMetrics = ReturnType<typeof makeHttpMetrics>;

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

export function makeHttpMetrics(registry: Registry) {
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
