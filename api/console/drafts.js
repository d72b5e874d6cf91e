import { useEffect, useState } from "preact/hooks";

/** What was typed and not sent: kept in this tab, through a new sign-in and when the page is loaded again. */

const prefix = "switchyard-draft:";
const keyOf = (/** @type {string} */ name) => `${prefix}${location.pathname}:${name}`;

/** Names of the page's fields whose text nobody has sent. @type {Set<string>} */
const edited = new Set();

export const isEdited = () => edited.size > 0;

/** Forgets what was typed on all pages, as at sign-out. */
export function forgetDrafts() {
  const keys = Array.from({ length: sessionStorage.length }, (_, at) => sessionStorage.key(at) ?? "");
  for (const key of keys) if (key.startsWith(prefix)) sessionStorage.removeItem(key);
  edited.clear();
}

/**
 * A text that a person edits; as `useState`. Until it is changed it is `initial`, whatever that becomes.
 * @param {string} name of the field on its page
 * @param {string} [initial]
 * @returns {[string, (text: string) => void, () => void]} the last one forgets what was typed, as when it was sent
 */
export function useDraft(name, initial = "") {
  const [key] = useState(() => keyOf(name));
  const [typed, setTyped] = useState(() => sessionStorage.getItem(key) ?? undefined);
  useEffect(() => {
    if (sessionStorage.getItem(key) !== null) edited.add(key);
    return () => void edited.delete(key); // the text stays for who comes back
  }, [key]);
  const forget = () => {
    setTyped(undefined);
    edited.delete(key);
    sessionStorage.removeItem(key);
  };
  /** @param {string} next */
  const change = (next) => {
    if (next === initial) return forget();
    setTyped(next);
    edited.add(key);
    try {
      sessionStorage.setItem(key, next);
    } catch {
      sessionStorage.removeItem(key); // larger than the browser keeps: only this page has it
    }
  };
  return [typed ?? initial, change, forget];
}

/** Whether a person wants to leave the page, asked if something there was typed and not sent. */
export const mayLeave = () => !isEdited() || confirm("What you have typed here is not saved. Leave the page?");

window.addEventListener("beforeunload", (event) => {
  if (isEdited()) event.preventDefault();
});
