import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, get } from "./api.js";
import { listen } from "./live.js";
import { recall, remember } from "./router.js";
import { mergeOne, mergePage, noRows } from "./rows.js";
import { makeTurn } from "./turns.js";

/** @typedef {{ value: any, error: any, reload: () => void, set: (value: any) => void }} Loaded */

/**
 * What a path responds, loaded again when the path changes and on demand; nothing for no path. Where something was read once, it
 * stays when a later read fails, which is tried again.
 * @param {string | undefined} path
 * @param {{ everyMs?: number }} [pace] the least time between two reads that nobody has asked for
 * @returns {Loaded}
 */
export function useLoad(path, { everyMs } = {}) {
  const [state, setState] = useState(/** @type {{ path?: string | undefined, value?: any, error?: any }} */ ({}));
  const turn = useMemo(() => {
    /** @param {{ value: any, error?: any }} read */
    const keep = (read) => {
      remember(path ?? "", read.value);
      setState({ path, ...read });
    };
    return makeTurn(async () => {
      if (path === undefined) return;
      try {
        keep({ value: await get(path) });
      } catch (error) {
        setState((before) => ({ path, value: before.path === path ? before.value : recall(path), error }));
        throw error;
      }
    }, everyMs);
  }, [path]);
  useEffect(() => {
    turn.begin();
    return turn.end;
  }, [turn]);
  const isOfPath = state.path === path;
  return {
    value: (isOfPath ? state.value : path && recall(path)) || undefined,
    error: isOfPath ? state.error : undefined,
    reload: turn.ask,
    set: useCallback((value) => setState({ path, value }), [path]),
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

/** Whether the reader is where new rows appear, and reads or marks nothing below. */
const isAtTop = () => window.scrollY < 80 && document.getSelection()?.isCollapsed !== false;

/** The page after a row. @param {string} path @param {string | null | undefined} cursor */
const pageAfter = (path, cursor) =>
  !cursor ? path : `${path}${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}`;

/** Which pages are to be read again: the first one, and those with work that has not ended. @param {any} rows @param {string} id @param {number} size */
function pagesToRead({ items, pages }, id, size) {
  /** @type {(string | undefined)[]} */
  const found = [undefined];
  for (let at = size; at < items.length && found.length < pages; at += size) {
    const isOpen = items.slice(at, at + size).some((/** @type {any} */ { status }) => openStates.includes(status));
    if (isOpen) found.push(items[at - 1][id]);
  }
  return found;
}
const openStates = ["queued", "running", "awaiting", "processing", "pending"];

/**
 * The pages of a list, one after the other. With `id`, the field that names a row, the pages that were loaded stay while others
 * change, and newer rows are announced to a reader who is not at the top.
 * @param {string} path of the first page, with its query
 * @param {{ id?: string }} [how]
 */
export function useList(path, { id } = {}) {
  const size = Number(new URLSearchParams(path.split("?")[1]).get("limit") ?? 50);
  const [state, setState] = useState(/** @returns {import("./rows.js").Rows} */ () => recall(path) ?? noRows(path));
  const [error, setError] = useState(/** @type {any} */ (undefined));
  const { turn, change, showNew } = useMemo(() => makeReader({ path, id, size, setState, setError }), [path]);
  useEffect(() => {
    turn.begin();
    return turn.end;
  }, [turn]);
  /** @type {import("./rows.js").Rows} */
  const shown = state.path === path ? state : (recall(path) ?? noRows(path));
  useEffect(() => {
    if (state.path === path && state.isLoaded) remember(path, state);
  }, [state, path]);
  const more = async () => {
    try {
      const { items, next } = await readPage(pageAfter(path, shown.next));
      setState((/** @type {any} */ before) => {
        const known = new Set(id ? before.items.map((/** @type {any} */ one) => one[id]) : []);
        const added = id ? items.filter((/** @type {any} */ one) => !known.has(one[id])) : items;
        const pages = before.pages + 1;
        return before.path === path ? { ...before, items: [...before.items, ...added], next, pages } : before;
      });
    } catch (failure) {
      setError(failure);
    }
  };
  return { ...shown, id, error, more, change, showNew, reload: turn.ask, retry: turn.begin };
}

/** A list that is read again when `at` changes. @param {string} path @param {string} at */
export function useListAt(path, at) {
  const list = useList(path);
  const first = useRef(at);
  useEffect(() => {
    if (at !== first.current) list.reload();
  }, [at]);
  return list;
}

/** @param {{ path: string, id: string | undefined, size: number, setState: (change: any) => void, setError: (error: any) => void }} list */
function makeReader({ path, id, size, setState, setError }) {
  /** @type {(string | undefined)[]} */
  let left = [];
  let mustReset = id === undefined;
  /** @type {any} */
  let latest = recall(path) ?? noRows(path);
  /** @param {(rows: any) => any} next */
  const set = (next) =>
    setState((/** @type {any} */ before) => {
      latest = next(before.path === path ? before : (recall(path) ?? noRows(path)));
      return latest;
    });
  const turn = makeTurn(async () => {
    if (left.length === 0) left = id === undefined || mustReset ? [undefined] : pagesToRead(latest, id, size);
    const [after] = left;
    try {
      const { items, next } = await readPage(pageAfter(path, after));
      setError(undefined);
      if (mustReset || id === undefined) set(() => ({ ...noRows(path), items, next, isLoaded: true }));
      else set((rows) => mergePage(rows, { items, next, after, id, size, isAtTop: isAtTop() }));
      mustReset = id === undefined;
    } catch (error) {
      setError(error);
      throw error;
    }
    left = left.slice(1);
    if (left.length > 0) turn.ask();
  });
  return {
    turn,
    /** Puts a changed row where it belongs. @param {any} item @param {(item: any) => boolean} fits */
    change: (item, fits) =>
      set((rows) => (id === undefined ? rows : mergeOne(rows, item, { id, size, isAtTop: isAtTop(), fits }))),
    showNew: () => {
      window.scrollTo(0, 0);
      mustReset = true;
      left = [];
      return turn.begin();
    },
  };
}

/**
 * Calls `onChange` with each job of the tenant that changes, and without one when several may have.
 * @param {(job?: any) => void} onChange
 */
export function useJobChanges(onChange) {
  useEffect(() => listen(onChange), [onChange]);
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
