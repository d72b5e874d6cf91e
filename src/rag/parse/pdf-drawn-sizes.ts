import type { Line } from "./pdf-line.ts";

/** A drawn font that is larger or smaller than the commonest one by less than this has its size: bold letters are wider. */
const SAME_SIZE = { from: 0.9, to: 1.25 };

/**
 * Gives the lines of each drawn font one size. The height of such letters is guessed by their width on each page, and a guess
 * from few letters is worth little, so that lines of the text would pass for headings.
 */
export function settleSizes(pages: readonly (readonly Line[])[]): (readonly Line[])[] {
  const fonts = new Map<string, { letters: number; sum: number }>();
  for (const { font, size, text, isDrawn } of pages.flat()) {
    if (!isDrawn) continue;
    const { letters, sum } = fonts.get(font) ?? { letters: 0, sum: 0 };
    fonts.set(font, { letters: letters + text.length, sum: sum + size * text.length });
  }
  if (fonts.size === 0) return [...pages];
  const sizes = [...fonts].map(([font, { letters, sum }]) => ({ font, letters, size: sum / Math.max(1, letters) }));
  const body = sizes.reduce((most, each) => (each.letters > most.letters ? each : most)).size;
  const settled = new Map(
    sizes.map(({ font, size }) => {
      const isBody = size >= SAME_SIZE.from * body && size <= SAME_SIZE.to * body;
      return [font, Math.round((isBody ? body : size) * 10) / 10];
    }),
  );
  return pages.map((lines) =>
    lines.map((line) => (line.isDrawn ? { ...line, size: settled.get(line.font) ?? line.size } : line)),
  );
}
