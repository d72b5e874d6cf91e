import { type DestinationStream, type Logger, pino } from "pino";
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

/** The trace that a line belongs to, where there is one. */
function traceFields(): { traceId?: string } {
  const traceId = currentTraceId();
  return traceId === undefined ? {} : { traceId };
}

/** Lines are gathered up to so many bytes, and so many ms. What is gathered is written before the process exits, unless it is killed. */
const GATHERED_BYTES = 8 << 10;
const GATHER_MS = 50;

/** The root logger of a process: JSON lines on stdout (or `destination`), secrets redacted, times in ISO 8601. */
export function makeLogger(options: { level: string; name: string; destination?: DestinationStream }): Logger {
  const settings = {
    name: options.name,
    level: options.level,
    redact: { paths: redactPaths, censor: "[redacted]" },
    timestamp: pino.stdTimeFunctions.isoTime,
    mixin: traceFields,
  };
  const stdout = { dest: 1, sync: false, minLength: GATHERED_BYTES, periodicFlush: GATHER_MS };
  return pino(settings, options.destination ?? pino.destination(stdout));
}
