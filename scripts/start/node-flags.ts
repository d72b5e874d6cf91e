/**
 * Node's flags for an API process; `npm run api`, the image and the manifests say the same. How soon it compiles, it sets itself
 * (api/compile-soon.ts).
 *
 * - `--max-semi-space-size`: V8 doubles its space for new objects up to 128 MB when many streams open at once, and does not
 *   give it back: a held stream takes 80 KB then, with 16 MB it takes 63, and an idle API 30 MB less. With 8 MB it takes no less,
 *   but whole requests outlive two collections, so that a busy API spends a quarter of its time on garbage.
 * - `--initial-old-space-size=200`: uploaded files and the messages that store them lie outside of V8's heap and count as its
 *   growth, so that an API that takes files would collect all of its garbage three times a second, a third of its main thread.
 *   From this size on, in MB, it does, every few seconds. A call of a busy API takes 0.28 ms of processor with it, 0.40 without.
 *   The price: an API that takes files holds up to 100 MB more.
 * - `--v8-pool-size=0`: one helper thread fewer than there are cores, and at least one; four, the default, take the time of
 *   the thread that answers where the machine has other work: the slowest hundredth of calls waits about twice as long. On a
 *   quiet machine they make no difference. The price: 55 MB.
 */
export const apiFlags: readonly string[] = [
  "--max-semi-space-size=16",
  "--initial-old-space-size=200",
  "--v8-pool-size=0",
];

/**
 * Node's flags for a worker process; `npm run worker` and the manifests say the same. Vectors and the messages to the store lie
 * outside of V8's heap, as an API's files do: without the flag a worker that indexes documents collects all of its garbage
 * three times a second, a seventh of all processor time that the documents take. The price: a busy worker holds up to 100 MB
 * more; an idle one does not.
 */
export const workerFlags: readonly string[] = ["--initial-old-space-size=200"];

/** Node's flags for every process: `stripped-types.mjs` says what for. A process hands them to those that it starts. */
export const commonFlags: readonly string[] = ["--import=./scripts/start/stripped-types.mjs"];
