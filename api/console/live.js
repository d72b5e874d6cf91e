import { RECOVERED } from "./connection.js";

/** The changes of the tenant's jobs: one stream of events for all that is on the page. */

const [FIRST_MS, MAX_MS] = [1_000, 30_000];
/** How long the stream stays open without listeners, in ms: those of the next page come in a moment. */
const LINGER_MS = 2_000;

/** @typedef {(job?: any) => void} Listener with a job that has changed; without one when others may have, too */

/** @type {Set<Listener>} */
const listeners = new Set();
/** @type {EventSource | undefined} */
let source;
let failures = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** @param {any} [job] */
const tell = (job) => {
  for (const listener of [...listeners]) listener(job);
};

function open() {
  clearTimeout(timer);
  if (source !== undefined || listeners.size === 0) return;
  const opened = new EventSource("/jobs/events");
  source = opened;
  opened.addEventListener("job", (event) => tell(JSON.parse(event.data)));
  opened.addEventListener("refresh", () => tell());
  opened.addEventListener("open", () => {
    failures = 0;
    tell(); // of what has happened before nothing is repeated
  });
  opened.addEventListener("error", () => {
    if (opened.readyState !== EventSource.CLOSED || source !== opened) return; // else it connects again by itself
    source = undefined;
    const wait = Math.min(FIRST_MS * 2 ** failures, MAX_MS);
    failures += 1;
    timer = setTimeout(open, wait * (0.5 + Math.random()));
  });
}

function closeIfUnheard() {
  if (listeners.size > 0) return;
  source?.close();
  source = undefined;
  clearTimeout(timer);
}

/** Calls a listener at changes, until the returned function is called. @param {Listener} listener */
export function listen(listener) {
  listeners.add(listener);
  open();
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) setTimeout(closeIfUnheard, LINGER_MS);
  };
}

window.addEventListener(RECOVERED, () => {
  source?.close(); // another session's, perhaps
  source = undefined;
  failures = 0;
  open();
});
