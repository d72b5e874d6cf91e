import { useCallback, useEffect, useState } from "preact/hooks";
import { call, get } from "./api.js";

/** @typedef {{ value: any, error: Error | undefined, reload: () => void, set: (value: any) => void }} Loaded */

/**
 * What a path responds, loaded again when the path changes and on demand; nothing for no path.
 * @param {string | undefined} path
 * @returns {Loaded}
 */
export function useLoad(path) {
  const [state, setState] = useState(/** @type {{ path?: string, value?: any, error?: Error }} */ ({}));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === undefined) return;
    let isCurrent = true;
    get(path).then(
      (value) => isCurrent && setState({ path, value }),
      (error) => isCurrent && setState((before) => ({ path, value: before.path === path && before.value, error })),
    );
    return () => {
      isCurrent = false;
    };
  }, [path, turn]);
  const isOfPath = state.path === path;
  return {
    value: isOfPath ? state.value || undefined : undefined,
    error: isOfPath ? state.error : undefined,
    reload: useCallback(() => setTurn((before) => before + 1), []),
    set: useCallback((value) => setState({ ...(path === undefined ? {} : { path }), value }), [path]),
  };
}

/** The next page's cursor of a response, and its items: of a list, or of a bare array with a `link`. @param {string} path */
async function readPage(path) {
  const response = await call("GET", path);
  const body = await response.json();
  if (!Array.isArray(body)) return { items: body.data, next: body.nextCursor };
  const link = /<([^>]*)>/.exec(response.headers.get("link") ?? "")?.[1];
  return { items: body, next: link ? new URL(link, location.origin).searchParams.get("cursor") : null };
}

/**
 * The pages of a list, one after the other.
 * @param {string} path of the first page, with its query
 */
export function useList(path) {
  const empty = { path, items: /** @type {any[]} */ ([]), next: /** @type {string | null} */ (null), isLoaded: false };
  const [state, setState] = useState(empty);
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    readPage(path).then(
      ({ items, next }) => {
        if (!isCurrent) return;
        setError(undefined);
        setState({ path, items, next, isLoaded: true });
      },
      (failure) => isCurrent && setError(failure),
    );
    return () => {
      isCurrent = false;
    };
  }, [path, turn]);
  const shown = state.path === path ? state : empty;
  const more = async () => {
    try {
      const { items, next } = await readPage(`${path}${path.includes("?") ? "&" : "?"}cursor=${shown.next}`);
      setState((before) => (before.path === path ? { ...before, items: [...before.items, ...items], next } : before));
    } catch (failure) {
      setError(/** @type {Error} */ (failure));
    }
  };
  return { ...shown, error, more, reload: useCallback(() => setTurn((before) => before + 1), []) };
}

/**
 * Calls `onChange` with each job of the tenant that changes, and without one when several may have.
 * @param {(job?: any) => void} onChange
 */
export function useJobChanges(onChange) {
  useEffect(() => {
    const source = new EventSource("/jobs/events");
    source.addEventListener("job", (event) => onChange(JSON.parse(event.data)));
    source.addEventListener("refresh", () => onChange());
    source.addEventListener("open", () => onChange());
    return () => source.close();
  }, [onChange]);
}

/** Runs what a person asked for, and shows how it ended. */
export function useAction() {
  const [state, setState] = useState({ isBusy: false, error: /** @type {any} */ (undefined) });
  /** @param {() => Promise<unknown>} work @param {() => void} [after] when it has succeeded */
  const run = async (work, after) => {
    setState({ isBusy: true, error: undefined });
    try {
      await work();
      setState({ isBusy: false, error: undefined });
      after?.();
    } catch (error) {
      setState({ isBusy: false, error });
    }
  };
  return { ...state, run };
}
