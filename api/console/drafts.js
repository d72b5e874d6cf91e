import { useEffect, useState } from "preact/hooks";

/** What was typed and not sent: kept in this tab, through a new sign-in and when the page is loaded again. */

const prefix = "switchyard-draft:";
const keyOf = (/** @type {string} */ name) => `${prefix}${location.pathname}:${name}`;

/** Names of the page's fields whose text nobody has sent. @type {Set<string>} */
const edited = new Set();

export const isEdited = () => edited.size > 0;

/** Forgets what was typed on this page. */
export function clearDrafts() {
  for (const key of edited) sessionStorage.removeItem(key);
  edited.clear();
}

/** Forgets what was typed on all pages, as at sign-out. */
export function forgetDrafts() {
  const keys = Array.from({ length: sessionStorage.length }, (_, at) => sessionStorage.key(at) ?? "");
  for (const key of keys) if (key.startsWith(prefix)) sessionStorage.removeItem(key);
  edited.clear();
}

/**
 * A text that a person edits; as `useState`.
 * @param {string} name of the field on its page
 * @param {string} initial
 * @returns {[string, (text: string) => void]}
 */
export function useDraft(name, initial) {
  const [key] = useState(() => keyOf(name));
  const [text, setText] = useState(() => sessionStorage.getItem(key) ?? initial);
  useEffect(() => {
    if (sessionStorage.getItem(key) !== null) edited.add(key);
    return () => void edited.delete(key); // the text stays for who comes back
  }, [key]);
  /** @param {string} next */
  const change = (next) => {
    setText(next);
    if (next === initial) {
      edited.delete(key);
      sessionStorage.removeItem(key);
      return;
    }
    edited.add(key);
    sessionStorage.setItem(key, next);
  };
  return [text, change];
}

/** Whether a person wants to leave the page, asked if something there was typed and not sent. */
export const mayLeave = () => !isEdited() || confirm("What you have typed here is not saved. Leave the page?");

window.addEventListener("beforeunload", (event) => {
  if (isEdited()) event.preventDefault();
});
