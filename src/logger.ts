import { type DestinationStream, type Logger, pino } from "pino";
import { defined } from "./defined.ts";
import { currentTraceId } from "./tracing.ts";

export type { Logger };

/** Field names whose values never reach a log line, at the top of a record and one or two levels down. */
const secretFields = [
  "authorization",
  "apiKey",
  "api_key",
  "key",
  "secret",
  "password",
  "token",
  "masterKey",
  "cookie",
];
const redactPaths = secretFields.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);

/** Lines are buffered up to this many bytes and ms. What is buffered is written before the process exits, unless it is killed. */
const BUFFERED_BYTES = 8 << 10;
const BUFFER_MS = 50;

/** The root logger of a process: JSON lines on stdout (or `destination`), secrets redacted, times in ISO 8601. */
export function makeLogger(options: { level: string; name: string; destination?: DestinationStream }): Logger {
  const settings = {
    name: options.name,
    level: options.level,
    redact: { paths: redactPaths, censor: "[redacted]" },
    timestamp: pino.stdTimeFunctions.isoTime,
    mixin: () => defined({ traceId: currentTraceId() }),
  };
  const stdout = { dest: 1, sync: false, minLength: BUFFERED_BYTES, periodicFlush: BUFFER_MS };
  return pino(settings, options.destination ?? pino.destination(stdout));
}

/** Logs a failure as a warning, at most once in `everyMs`: while a part is unavailable it fails again and again. */
export function makeErrorLog(logger: Logger, message: string, everyMs: number): (error: unknown) => void {
  let lastAt = Number.NEGATIVE_INFINITY;
  return (error) => {
    if (performance.now() - lastAt < everyMs) return;
    lastAt = performance.now();
    logger.warn({ err: { message: error instanceof Error ? error.message : String(error) } }, message);
  };
}
