import type { Attributes, Context, SpanKind } from "@opentelemetry/api";
import { AppError, Pause } from "../lib/errors.ts";

// OpenTelemetry's API is one facade per process, and does nothing until a root starts the SDK (src/observe/start-tracing.ts), so
// traced code needs no dependency. While tracing is off not even the facade is loaded: its empty spans cost a model call more
// than all of its metrics.
type Facade = typeof import("@opentelemetry/api");
let facade: Facade | undefined;

/** Called when the SDK starts, with the facade that it was given to, and when it stops. */
export function switchTracing(to: Facade | undefined): void {
  facade = to;
}

/** A span under way. Its end counts once. */
export type Traced = {
  /** Runs `work` in the span: what it begins, logs and submits is a part of it. */
  run<T>(work: () => T): T;
  /** Adds attributes, which are made only where something is traced. */
  add(toAttributes: () => Attributes): void;
  /** `failure` is the code of what went wrong. */
  end(end?: { name?: string; attributes?: Attributes; failure?: string | undefined }): void;
};

export type SpanStart = {
  name: string;
  kind: keyof typeof SpanKind;
  attributes: Attributes;
  /** What it continues, as W3C `traceparent` in a carrier; by default, the current span. */
  parent?: { traceparent?: string | string[] | undefined };
};

/** What nothing is traced with. */
export const untraced: Traced = { run: (work) => work(), add: () => undefined, end: () => undefined };

/** Outcomes that are no errors: the client has disconnected or cancelled. */
const notErrors = new Set(["client_closed", "cancelled"]);

/** Begins a span. Attributes hold ids and names, never contents or keys. */
export function beginSpan(start: SpanStart | (() => SpanStart)): Traced {
  if (facade === undefined) return untraced;
  const { name, kind, attributes, parent } = typeof start === "function" ? start() : start;
  const { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } = facade;
  const within = parent === undefined ? context.active() : propagation.extract(ROOT_CONTEXT, parent);
  const span = trace.getTracer("switchyard").startSpan(name, { kind: SpanKind[kind], attributes }, within);
  if (!trace.isSpanContextValid(span.spanContext())) return untraced;
  const inside: Context = trace.setSpan(within, span);
  return {
    run: (work) => context.with(inside, work),
    add: (toAttributes) => void span.setAttributes(toAttributes()),
    end: (end = {}) => {
      if (end.name !== undefined) span.updateName(end.name);
      if (end.attributes !== undefined) span.setAttributes(end.attributes);
      if (end.failure !== undefined) {
        span.setAttribute("error.type", end.failure);
        if (!notErrors.has(end.failure)) span.setStatus({ code: SpanStatusCode.ERROR });
      }
      span.end();
    },
  };
}

/** Runs `work` in a span of its own. `toEnd`: what the span says of its result. */
export async function inSpan<T>(
  start: SpanStart,
  work: () => Promise<T>,
  toEnd?: (result: T) => Parameters<Traced["end"]>[0],
): Promise<T> {
  const traced = beginSpan(start);
  try {
    const result = await traced.run(work);
    traced.end(toEnd?.(result));
    return result;
  } catch (error) {
    traced.end({ failure: failureOf(error) });
    throw error;
  }
}

/** What a span says of an error: its code, never its message, which may quote a caller's text. Work that waits has none. */
export function failureOf(error: unknown): string | undefined {
  if (error instanceof Pause) return undefined;
  return error instanceof AppError ? error.code : "unexpected";
}

/** The current span as a W3C `traceparent`, to continue it elsewhere; undefined when nothing is traced. */
export function currentTrace(): string | undefined {
  if (facade === undefined) return undefined;
  const carrier: { traceparent?: string } = {};
  facade.propagation.inject(facade.context.active(), carrier);
  return carrier.traceparent;
}

/** The id of the current trace, for log lines. */
export function currentTraceId(): string | undefined {
  return facade?.trace.getSpanContext(facade.context.active())?.traceId;
}
