import type { DocumentWarning } from "../schemas.ts";

/** What a reader of office documents does not hold, in the order in which warnings name it; one and several of it. */
const kinds = {
  picture: ["picture", "pictures"],
  chart: ["chart", "charts"],
  object: ["embedded object", "embedded objects"],
  equation: ["equation that could not be written", "equations that could not be written"],
  symbol: ["symbol of an unknown font", "symbols of unknown fonts"],
  comment: ["comment", "comments"],
  formula: ["formula without a stored result", "formulas without a stored result"],
  hiddenSheet: ["hidden sheet", "hidden sheets"],
  hiddenRow: ["hidden row", "hidden rows"],
  hiddenColumn: ["hidden column", "hidden columns"],
  hiddenSlide: ["hidden slide", "hidden slides"],
  hiddenText: ["piece of hidden text", "pieces of hidden text"],
} as const;
const MAX_PAGES = 100;

export type LeftOut = ReturnType<typeof makeLeftOut>;
type LeftOutKind = keyof typeof kinds;

/** Counts what of a document is not read. */
export function makeLeftOut() {
  const counts = new Map<LeftOutKind, number>();
  const pages = new Set<number>();
  let total = 0;
  return {
    add(kind: LeftOutKind, page?: number): void {
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      total += 1;
      if (page !== undefined && pages.size < MAX_PAGES) pages.add(page);
    },
    /** How many parts were counted so far. */
    total: () => total,
    /** One warning that names all of it, if there is any. */
    warnings(): { warnings?: DocumentWarning[] } {
      if (total === 0) return {};
      const parts = Object.entries(kinds).flatMap(([kind, [one, several]]) => {
        const count = counts.get(kind as LeftOutKind) ?? 0;
        return count === 0 ? [] : [`${count} ${count === 1 ? one : several}`];
      });
      const message = `Left out: ${parts.join(", ")}.`;
      const places = pages.size === 0 ? {} : { pages: [...pages].sort((left, right) => left - right) };
      return { warnings: [{ code: "parts_left_out", message, ...places }] };
    },
  };
}
