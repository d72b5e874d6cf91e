import { Presets, SingleBar } from "cli-progress";
import type { Item, Problem } from "./find-items.ts";

/** Without a terminal a line is printed this often, in ms. */
const LINE_EVERY_MS = 5_000;
const REASON_WIDTH = 100;

export type Progress = {
  onEnd(isFailed: boolean): void;
  onPace(limit: number): void;
  stop(): void;
};

/** A bar on standard error with rate and remaining time; lines where there is no terminal; nothing when `isQuiet`. */
export function showProgress(total: number, isQuiet: boolean): Progress {
  const isTerminal = process.stderr.isTTY === true && !isQuiet;
  const startedAt = performance.now();
  let [done, failed, limit] = [0, 0, 0];
  const bar = new SingleBar(
    {
      format: "  {bar} {value}/{total}  {rate}/s  {left}  {failed}{pace}",
      barsize: Math.max(8, Math.min(30, (process.stderr.columns ?? 80) - 50)),
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
  if (isTerminal) bar.start(total, 0, facts());
  const line = () => {
    const { rate, left } = facts();
    process.stderr.write(`  ${done}/${total}  ${rate}/s  ${left}${failed > 0 ? `  ${failed} failed` : ""}\n`);
  };
  const timer = setInterval(() => (isTerminal ? bar.update(done, facts()) : line()), isTerminal ? 500 : LINE_EVERY_MS);
  if (isQuiet) clearInterval(timer);
  return {
    onEnd(isFailed) {
      done += 1;
      if (isFailed) failed += 1;
      if (isTerminal) bar.update(done, facts());
    },
    onPace(now) {
      limit = now;
    },
    stop() {
      clearInterval(timer);
      if (isTerminal) {
        bar.update(done, facts());
        bar.stop();
      }
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

/** What failed and why, each in a row. */
export function failureTable(failures: readonly Problem[]): string {
  const width = Math.min(60, Math.max(...failures.map(({ id }) => id.length)));
  return failures
    .map(
      ({ id, reason }) =>
        `  ${shorten(id, width).padEnd(width)}  ${reason.replace(/\s+/g, " ").slice(0, REASON_WIDTH)}`,
    )
    .join("\n");
}

/** The end of a long name tells more than its beginning. */
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
