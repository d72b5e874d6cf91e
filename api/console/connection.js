import { useEffect, useState } from "preact/hooks";
import { OUTAGE } from "./api.js";
import { html } from "./html.js";
import { Badge } from "./ui.js";

/** Whether the server responds: asked when a request has failed, until it does. */

/** The event of the window that says that requests which have failed may succeed now. */
export const RECOVERED = "switchyard-recovered";
export const recover = () => window.dispatchEvent(new Event(RECOVERED));

const [FIRST_MS, MAX_MS] = [1_000, 15_000];

/** @typedef {{ status: string, parts?: Record<string, any> }} Outage */

/** What /readyz says, if it does not say that all is well. @returns {Promise<Outage | undefined>} */
async function findOutage() {
  try {
    const response = await fetch("/readyz", { signal: AbortSignal.timeout(MAX_MS) });
    return response.ok ? undefined : await response.json();
  } catch {
    return { status: "no answer" };
  }
}

let isAsking = false;

/** @param {(outage: Outage | undefined) => void} show */
async function follow(show) {
  if (isAsking) return;
  isAsking = true;
  for (let wait = FIRST_MS; ; wait = Math.min(2 * wait, MAX_MS)) {
    const outage = await findOutage();
    show(outage);
    if (outage === undefined) break;
    await new Promise((resolve) => setTimeout(resolve, wait * (0.5 + Math.random())));
  }
  isAsking = false;
}

/** A note while the server does not respond, with what it says of its parts. */
export function Connection() {
  const [outage, setOutage] = useState(/** @type {Outage | undefined} */ (undefined));
  useEffect(() => {
    let wasDown = false;
    /** @param {Outage | undefined} found */
    const show = (found) => {
      setOutage(found);
      if (found === undefined && wasDown) recover();
      wasDown = found !== undefined;
    };
    const begin = () => follow(show);
    window.addEventListener(OUTAGE, begin);
    window.addEventListener("online", begin);
    return () => {
      window.removeEventListener(OUTAGE, begin);
      window.removeEventListener("online", begin);
    };
  }, []);
  if (outage === undefined) return null;
  const parts = Object.entries(outage.parts ?? {}).filter(([, { status }]) => status !== "up");
  const list = parts.map(
    ([name, { status, detail }]) => html`<li>${name} <${Badge} text=${status} /> ${detail ?? ""}</li>`,
  );
  return html`<div class="outage" role="status"><p>${outage.parts ? "The service cannot work now." : "The server does not respond."}
    What you see may be old; it comes up to date by itself. What you have typed stays.</p>${list.length > 0 ? html`<ul class="plain">${list}</ul>` : null}</div>`;
}
