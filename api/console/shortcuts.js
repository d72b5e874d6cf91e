import { useEffect, useState } from "preact/hooks";
import { html } from "./html.js";
import { navigate } from "./router.js";
import { openDialog } from "./session.js";

/** Keys that go somewhere, after `g`. @type {Record<string, { screen: string, title: string }>} */
const places = {
  h: { screen: "", title: "Home" },
  r: { screen: "runs", title: "Runs" },
  d: { screen: "documents", title: "Documents" },
  p: { screen: "playground", title: "Playground" },
  c: { screen: "calls", title: "Calls" },
  a: { screen: "agents", title: "Agents" },
  w: { screen: "workflows", title: "Workflows" },
  o: { screen: "approvals", title: "Approvals" },
  s: { screen: "schedules", title: "Schedules" },
  f: { screen: "feedback", title: "Feedback" },
  u: { screen: "usage", title: "Usage" },
  k: { screen: "keys", title: "Keys and limits" },
  g: { screen: "guards", title: "Guards" },
};
/** How long the second key of two may be waited for, in ms. */
const SECOND_MS = 1_500;

/** Moves to the link of the next row, or of the one before. @param {1 | -1} step */
function moveInRows(step) {
  const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("main tbody tr td:first-child a")]);
  const row = document.activeElement?.closest("tr");
  const at = links.findIndex((link) => link.closest("tr") === row);
  links[at < 0 ? 0 : Math.min(Math.max(at + step, 0), links.length - 1)]?.focus();
}

/** @param {{ onHelp: () => void }} to */
function makeOnKey({ onHelp }) {
  let wentAt = Number.NEGATIVE_INFINITY;
  /** @type {Record<string, () => void>} */
  const keys = {
    "/": () => document.getElementById("search")?.focus(),
    "?": onHelp,
    j: () => moveInRows(1),
    k: () => moveInRows(-1),
    g: () => {
      wentAt = performance.now();
    },
  };
  /** @param {KeyboardEvent} event */
  return (event) => {
    const isTyping = event.target instanceof Element && event.target.matches("input, textarea, select, dialog *");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const isSecond = performance.now() - wentAt < SECOND_MS;
    wentAt = Number.NEGATIVE_INFINITY;
    const place = isSecond ? places[event.key] : undefined;
    const act = place ? () => navigate(place.screen === "" ? "/" : `/console/${place.screen}`) : keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
}

/** The keys of the console, and their list under `?`. */
export function Shortcuts() {
  const [isShown, setIsShown] = useState(false);
  useEffect(() => {
    const onKey = makeOnKey({ onHelp: () => setIsShown(true) });
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  if (!isShown) return null;
  const hide = () => setIsShown(false);
  const rows = [
    ["/", "Find an id"],
    ["j, k", "The next row, the one before"],
    ["Enter", "Open it"],
    ...Object.entries(places).map(([key, { title }]) => [`g ${key}`, title]),
    ["?", "This list"],
  ];
  return html`<dialog ref=${openDialog} onClose=${hide} aria-labelledby="shortcuts"><h2 id="shortcuts">Keys</h2>
    <dl class="facts">${rows.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
    <p class="actions"><button type="button" onClick=${hide}>Close</button></p></dialog>`;
}
