import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { mayLeave } from "./drafts.js";

/** Pages of the console stand under this path. */
const base = "/console";
const CHANGED = "switchyard-navigated";

/** The screen of each kind of id, by its prefix. */
const screens = new Map(
  Object.entries({
    job: "runs",
    run: "agent-runs",
    doc: "documents",
    log: "calls",
    agt: "agents",
    wf: "workflows",
    apr: "approvals",
    exe: "composite-runs",
    wfr: "workflow-runs",
    resp: "responses",
    batch: "batches",
    msgbatch: "message-batches",
    file: "files",
    sch: "schedules",
    trg: "triggers",
    whk: "webhooks",
  }),
);

/** The page of an id of the product; undefined for a text that is none. @param {string} text */
export function addressOf(text) {
  const [id, prefix = ""] = /^([a-z]+)_[0-9A-Z]{26}$/.exec(text.trim()) ?? [];
  if (prefix === "key") return `${base}/usage?group=model&key=${id}`;
  const screen = screens.get(prefix);
  return screen && `${base}/${screen}/${id}`;
}

/** Places of the history whose scroll place and contents are remembered. */
const MAX_PLACES = 30;

/** What each place of the history had, for who goes back to it. @type {Map<string, { scrollY: number, read: Map<string, any> }>} */
const places = new Map();
let current = placeKey();

/** @returns {string} */
function placeKey() {
  return history.state?.place ?? "first";
}

function known() {
  const place = places.get(current) ?? { scrollY: 0, read: new Map() };
  places.set(current, place);
  const [oldest] = places.keys();
  if (places.size > MAX_PLACES && oldest !== undefined) places.delete(oldest);
  return place;
}

/** Forgets what was read in all places, as at sign-out: somebody else may go back. */
export const forgetPlaces = () => places.clear();

/** Remembers what was read for this place. @param {string} path @param {any} value */
export const remember = (path, value) => void known().read.set(path, value);

/** What was read here before. @param {string} path */
export const recall = (path) => known().read.get(path);

/** Goes to a place, if a person who has typed something here wants to. @param {string} path */
export function navigate(path) {
  if (!mayLeave()) return;
  known().scrollY = window.scrollY;
  current = crypto.randomUUID();
  history.pushState({ place: current }, "", path);
  window.dispatchEvent(new Event(CHANGED));
  window.scrollTo(0, 0);
}

/** Where the reader is: screen, id, and the query. */
function here() {
  const { pathname, search } = location;
  const [, first = "", second = "", third = ""] = pathname.split("/");
  const query = new URLSearchParams(search);
  if (first === "runs") return { screen: "agent-runs", id: second, query }; // addresses of earlier releases
  if (first === "approvals") return { screen: "approvals", id: "", query };
  return { screen: second === "" ? "home" : second, id: third, query };
}

/** The place, as it changes; links of the console do not load the page again. */
export function usePlace() {
  const [place, setPlace] = useState(here);
  useLayoutEffect(() => window.scrollTo(0, known().scrollY), [place]);
  useEffect(() => {
    history.scrollRestoration = "manual";
    const update = () => setPlace(here());
    const goBack = () => {
      known().scrollY = lastScroll;
      current = placeKey();
      update();
    };
    let lastScroll = window.scrollY;
    const note = () => {
      lastScroll = window.scrollY;
    };
    window.addEventListener("scroll", note, { passive: true });
    /** @param {MouseEvent} event */
    const follow = (event) => {
      const link = event.target instanceof Element ? event.target.closest("a") : null;
      const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
      if (!link || !isPlain || link.origin !== location.origin || link.target !== "") return;
      if (link.pathname !== "/" && !link.pathname.startsWith(`${base}/`)) return;
      event.preventDefault();
      navigate(link.pathname + link.search);
    };
    document.addEventListener("click", follow);
    window.addEventListener("popstate", goBack);
    window.addEventListener(CHANGED, update);
    return () => {
      document.removeEventListener("click", follow);
      window.removeEventListener("scroll", note);
      window.removeEventListener("popstate", goBack);
      window.removeEventListener(CHANGED, update);
    };
  }, []);
  return place;
}
