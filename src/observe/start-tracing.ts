import { type Logger, makeErrorLog } from "./logger.ts";
import { switchTracing } from "./tracing.ts";

/** Longest time that the collector has for a batch of spans, also for the last one at the end, in ms. */
const EXPORT_TIMEOUT_MS = 2_000;

/** At most one line about a collector that does not take spans in this time, in ms. */
const LOG_EVERY_MS = 60_000;

type TracingConfig = {
  endpoint: string | undefined;
  headers: Record<string, string>;
  serviceName: string | undefined;
  /** Share of the traces that are kept, from 0 to 1. */
  share: number;
};

/**
 * Starts OpenTelemetry for this process, when `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector: spans go there by OTLP over HTTP,
 * in batches, and are dropped when it does not take them. Otherwise nothing of OpenTelemetry is even loaded.
 * A client's `traceparent` is continued, but cannot raise the share of traces that are kept.
 */
export async function startTracing(options: { config: TracingConfig; process: "api" | "worker"; logger: Logger }) {
  const { config, process, logger } = options;
  if (config.endpoint === undefined) return { close: async () => undefined };
  const [api, sdk, { OTLPTraceExporter }, { AsyncLocalStorageContextManager }, core, resources] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/context-async-hooks"),
    import("@opentelemetry/core"),
    import("@opentelemetry/resources"),
  ]);
  const exporter = new OTLPTraceExporter({
    url: `${config.endpoint.replace(/\/+$/, "")}/v1/traces`,
    headers: config.headers,
    timeoutMillis: EXPORT_TIMEOUT_MS,
  });
  const share = new sdk.TraceIdRatioBasedSampler(config.share);
  const provider = new sdk.TracerProvider({
    resource: resources.resourceFromAttributes({ "service.name": config.serviceName ?? `switchyard-${process}` }),
    sampler: new sdk.ParentBasedSampler({ root: share, remoteParentSampled: share }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter, exportTimeoutMillis: EXPORT_TIMEOUT_MS })],
  });
  const onError = makeErrorLog(logger, "traces are lost", LOG_EVERY_MS);
  core.setGlobalErrorHandler(onError);
  const { context, propagation, trace } = api;
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new core.W3CTraceContextPropagator());
  switchTracing(api);
  return {
    async close() {
      switchTracing(undefined);
      await provider.shutdown().catch(onError); // spans may be lost, work may not
      for (const part of [trace, context, propagation]) part.disable();
    },
  };
}
