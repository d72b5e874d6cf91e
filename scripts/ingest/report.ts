import { MultiBar, Presets } from "cli-progress";
import type { Item } from "./item.ts";
import type { Problem } from "./walk-folder.ts";

/** Without a terminal a line is printed this often, in ms. */
const LINE_EVERY_MS = 5_000;
const REASON_WIDTH = 100;

export type Progress = {
  onEnd(isFailed: boolean): void;
  onPace(limit: number): void;
  /** Prints a line, above the bar where there is one. */
  say(text: string): void;
  stop(): void;
};

/** A bar on standard error with rate and remaining time; lines where there is no terminal; nothing when `isQuiet`. */
export function showProgress(total: number, isQuiet: boolean, stream = process.stderr): Progress {
  const isTerminal = stream.isTTY === true && !isQuiet;
  const startedAt = performance.now();
  let [done, failed, limit] = [0, 0, 0];
  // A bar of several, although there is one: a single one ends by moving the cursor back to where it began.
  const bars = new MultiBar(
    {
      stream,
      gracefulExit: false, // the command itself stops at a signal, and goes on drawing until then
      format: "  {bar} {value}/{total}  {rate}/s  {left}  {failed}{pace}",
      barsize: Math.max(8, Math.min(30, (stream.columns ?? 80) - 50)),
      hideCursor: true,
      noTTYOutput: false,
    },
    Presets.shades_classic,
  );
  const facts = () => {
    const seconds = (performance.now() - startedAt) / 1_000;
    const rate = done / Math.max(seconds, 0.001);
    const left = done === 0 ? "…" : `${toTime((total - done) / rate)} left`;
    const pace = limit > 0 ? `  ${limit} at once` : "";
    return { rate: rate.toFixed(1), left, failed: failed > 0 ? `${failed} failed` : "", pace };
  };
  const bar = isTerminal ? bars.create(total, 0, facts()) : undefined;
  const line = () => {
    const { rate, left } = facts();
    stream.write(`  ${done}/${total}  ${rate}/s  ${left}${failed > 0 ? `  ${failed} failed` : ""}\n`);
  };
  const timer = setInterval(() => (bar ? bar.update(done, facts()) : line()), isTerminal ? 500 : LINE_EVERY_MS);
  if (isQuiet) clearInterval(timer);
  return {
    onEnd(isFailed) {
      done += 1;
      if (isFailed) failed += 1;
      bar?.update(done, facts());
    },
    onPace(now) {
      limit = now;
    },
    say(text) {
      if (bar) {
        bars.log(`${text}\n`);
        bars.update();
      } else if (!isQuiet) stream.write(`${text}\n`);
    },
    stop() {
      clearInterval(timer);
      bar?.update(done, facts());
      if (bar) bars.stop();
    },
  };
}

function toTime(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes}m${String(whole % 60).padStart(2, "0")}s`
    : `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, "0")}m`;
}

/** What it is and why, each in a row. */
export function problemTable(failures: readonly Problem[]): string {
  const width = Math.min(60, Math.max(...failures.map(({ id }) => id.length)));
  return failures
    .map(
      ({ id, reason }) =>
        `  ${shorten(id, width).padEnd(width)}  ${reason.replace(/\s+/g, " ").slice(0, REASON_WIDTH)}`,
    )
    .join("\n");
}

/** The end of a long name says more than its beginning. */
function shorten(text: string, width: number): string {
  return text.length <= width ? text : `…${text.slice(1 - width)}`;
}

/** Bytes of all items, as people read them. */
export function totalSize(items: readonly Item[]): string {
  const bytes = items.reduce((sum, item) => sum + item.bytes, 0);
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = bytes === 0 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1_000 ** step).toFixed(step === 0 ? 0 : 1)} ${units[step]}`;
}
