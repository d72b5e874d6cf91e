import { Counter, Gauge, type GaugeConfiguration, Histogram, type Registry } from "prom-client";

type About<L extends string> = { help: string; labels?: readonly L[] };

/** How the metrics of a registry are made. */
export function instrumentsOf(registry: Registry) {
  const registers = [registry];
  return {
    counter: <L extends string>(name: string, { help, labels = [] }: About<L>) =>
      new Counter({ name, help, labelNames: labels, registers }),
    /** `collect` sets the value when the metrics are read. */
    gauge: <L extends string>(
      name: string,
      { help, labels = [], collect }: About<L> & Pick<GaugeConfiguration<L>, "collect">,
    ) => new Gauge({ name, help, labelNames: labels, registers, ...(collect ? { collect } : {}) }),
    histogram: <L extends string>(name: string, { help, labels = [], buckets }: About<L> & { buckets: number[] }) =>
      new Histogram({ name, help, labelNames: labels, buckets, registers }),
  };
}
