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

/** Lines are gathered up to this many characters and ms. What is gathered is written before the process exits, unless it is killed. */
const GATHERED_CHARACTERS = 8 << 10;
const GATHER_MS = 50;

/** The root logger of a process: JSON lines on stdout (or `destination`), secrets redacted, times in ISO 8601. */
export function makeLogger(options: { level: string; name: string; destination?: DestinationStream }): Logger {
  const settings = {
    name: options.name,
    level: options.level,
    redact: { paths: redactPaths, censor: "[redacted]" },
    timestamp: pino.stdTimeFunctions.isoTime,
    mixin: () => {
      const traceId = currentTraceId();
      return traceId === undefined ? {} : { traceId };
    },
  };
  if (options.destination !== undefined) return pino(settings, options.destination);
  stdout ??= gatherStdout(); // one for all loggers of the process
  return pino(settings, stdout);
}

type GatheredLines = DestinationStream & { flushSync(): void };
let stdout: GatheredLines | undefined;

/** Stdout in few writes. The library's own buffer copies all that it holds for each line that comes. */
function gatherStdout(): GatheredLines {
  let lines: string[] = [];
  let characters = 0;
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (lines.length === 0) return;
    sink.write(lines.join(""));
    lines = [];
    characters = 0;
  };
  const flushSync = () => {
    flush();
    sink.flushSync();
  };
  process.on("beforeExit", flush).on("exit", flushSync);
  const sink = pino.destination({ dest: 1, sync: false }); // it ends itself at these events, after us
  return {
    write(line) {
      lines.push(line);
      characters += line.length;
      if (characters >= GATHERED_CHARACTERS) flush();
      else timer ??= setTimeout(flush, GATHER_MS).unref();
    },
    flushSync,
  };
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
