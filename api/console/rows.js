/** The rows of a list that are on the page, newest first, and what becomes of them by pages and events. */

/**
 * @typedef {{ path: string, items: readonly any[], next: string | null, isLoaded: boolean, pages: number, fresh: readonly string[] }} Rows
 * `pages`: how many a person has asked for; `fresh`: ids of newer ones, which are not shown yet
 */

/** @param {string} path @returns {Rows} */
export const noRows = (path) => ({ path, items: [], next: null, isLoaded: false, pages: 1, fresh: [] });

/** Newer ones that are counted; then there are "200+". */
export const MAX_FRESH = 200;

/** No more rows than the pages that were asked for: what is older is on the next page. @param {Rows} rows @param {string} id @param {number} size @returns {Rows} */
function trim(rows, id, size) {
  const most = rows.pages * size;
  if (rows.items.length <= most) return rows;
  const items = rows.items.slice(0, most);
  return { ...rows, items, next: items.at(-1)[id] };
}

/** @param {Rows} rows @param {readonly string[]} ids @returns {Rows} */
const withFresh = (rows, ids) => ({ ...rows, fresh: [...new Set([...rows.fresh, ...ids])].slice(0, MAX_FRESH) });

/**
 * The rows with a page that was read again: what it does not have any more goes. Newer rows are shown at once only to a reader at
 * the top.
 * @param {Rows} rows
 * @param {{ items: readonly any[], next: string | null, after: string | undefined, id: string, size: number, isAtTop: boolean }} page
 * @returns {Rows}
 */
export function mergePage(rows, { items, next, after, id, size, isAtTop }) {
  const top = rows.items[0]?.[id];
  const isHeld = after === undefined && !isAtTop && top !== undefined;
  const newer = isHeld ? items.filter((item) => item[id] > top) : [];
  const shown = items.slice(newer.length);
  const lowest = next === null ? "" : (items.at(-1)?.[id] ?? next); // a searched page may hold nothing, and more may follow
  const before = rows.items.filter((item) => after !== undefined && item[id] >= after);
  const behind = rows.items.filter((item) => item[id] < lowest);
  const isEnd = behind.length === 0 && (newer.length < items.length || items.length === 0);
  const merged = { ...rows, items: [...before, ...shown, ...behind], next: isEnd ? next : rows.next, isLoaded: true };
  if (isHeld && newer.length === items.length && items.length > 0)
    return withFresh(
      rows,
      newer.map((item) => item[id]),
    );
  return trim(
    withFresh(
      after === undefined && !isHeld ? { ...merged, fresh: [] } : merged,
      newer.map((item) => item[id]),
    ),
    id,
    size,
  );
}

/**
 * The rows after one has changed; `fits`: whether it is one of the list. Returns the same rows if that changes none.
 * @param {Rows} rows
 * @param {any} changed
 * @param {{ id: string, size: number, isAtTop: boolean, fits: (item: any) => boolean }} how
 * @returns {Rows}
 */
export function mergeOne(rows, changed, { id, size, isAtTop, fits }) {
  const key = changed[id];
  const at = rows.items.findIndex((item) => item[id] === key);
  const isOne = fits(changed);
  if (at >= 0) {
    const items = isOne ? rows.items.with(at, { ...rows.items[at], ...changed }) : rows.items.toSpliced(at, 1);
    return { ...rows, items };
  }
  if (!isOne || !rows.isLoaded) return rows;
  const top = rows.items[0]?.[id] ?? "";
  const isOlder = rows.next !== null && key < rows.items.at(-1)?.[id];
  if (isOlder) return rows; // it is on a page that is not loaded
  if (key > top && !isAtTop && rows.items.length > 0) return rows.fresh.includes(key) ? rows : withFresh(rows, [key]);
  const place = rows.items.findIndex((item) => item[id] < key);
  const items = rows.items.toSpliced(place < 0 ? rows.items.length : place, 0, changed);
  return trim({ ...rows, items }, id, size);
}
