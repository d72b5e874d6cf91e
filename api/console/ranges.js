/** Ranges of time for charts, as the address of a page has them. */

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** Each range with its length in ms. */
const lengths = /** @type {Record<string, number>} */ ({
  hour: hourMs,
  day: dayMs,
  week: 7 * dayMs,
  month: 30 * dayMs,
});
export const ranges = [...Object.keys(lengths), "own"];

/** @param {string} range */
export const nameOfRange = (range) => (range === "own" ? "own" : `the last ${range}`);

/** @param {number} at */
const dayOf = (at) => new Date(at).toISOString().slice(0, 10);

/**
 * The range that a query names, with the one before it, in ms. A range that ends now is moved once a minute.
 * @param {URLSearchParams} query
 */
export function readRange(query) {
  const range = ranges.find((name) => name === query.get("range")) ?? "month";
  const now = Math.ceil(Date.now() / 60_000) * 60_000;
  const firstDay = query.get("from") ?? dayOf(now - 6 * dayMs);
  const lastDay = query.get("to") ?? dayOf(now);
  const isOwn = range === "own";
  const to = isOwn ? Date.parse(lastDay) + dayMs : now;
  const length = lengths[range];
  // A month is of whole days: the first one would else be a part.
  const from = isOwn
    ? Date.parse(firstDay)
    : range === "month"
      ? Date.parse(dayOf(now)) - 29 * dayMs
      : to - (length ?? dayMs);
  return { range, from, to, before: { from: from - (to - from), to: from }, firstDay, lastDay };
}

/** The whole days of a range, as `/usage` takes them. @param {{ from: number, to: number }} range */
export const daysOf = ({ from, to }) => ({ from: dayOf(from), to: dayOf(Math.min(to - 1, Date.now())) });
