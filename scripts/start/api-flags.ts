/**
 * Node's flags for an API process; `npm run api`, the image and the manifests say the same.
 *
 * - `--max-semi-space-size`: V8 doubles its space for new objects up to 128 MB when many streams open at once, and does not
 *   give it back: a held stream takes 120 KB then. With 16 MB it takes 57. With 8 MB it takes no less, but whole requests
 *   outlive two collections, so that a busy API spends a quarter of its time on garbage.
 * - `--no-memory-reducer`: after a quiet moment V8 would shrink the heap and throw compiled code away, and the next burst of
 *   calls runs at half the speed. The price: after a load a process stays at 310 MB of memory, where it fell to 200.
 * - `--v8-pool-size=0`: as many helper threads as there are cores, not four, which on a small machine take the time of the
 *   thread that answers: the slowest hundredth of calls waits a third as long.
 * - `--invocation-count-for-maglev`, `--invocation-count-for-turbofan`, `--minimum-invocations-after-ic-update`: how often
 *   something has run before it is compiled well, a tenth of V8's own numbers. A provider that closes an idle connection, or a
 *   first answer of another shape, throws compiled code away; at 200 calls a second V8 would take 15 s to compile it again.
 *   A call then takes 0.87 to 0.96 ms where it took 1.05.
 */
export const apiFlags: readonly string[] = [
  "--max-semi-space-size=16",
  "--no-memory-reducer",
  "--v8-pool-size=0",
  "--invocation-count-for-maglev=40",
  "--invocation-count-for-turbofan=200",
  "--minimum-invocations-after-ic-update=40",
];

/** Node's flags for every process: `stripped-types.mjs` says what for. A process hands them to those that it starts. */
export const commonFlags: readonly string[] = ["--import=./scripts/start/stripped-types.mjs"];
