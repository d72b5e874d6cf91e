/** What pdf.js gives of a page's text: texts, and marks of structure, which have no `str`. */
export type GivenItem =
  | { str: string; transform: number[]; width: number; height: number; fontName: string; hasEOL: boolean }
  | { type: string };

/** A text at its place on the page as it is read: `y` rises to the top, `size` is the height of its letters. */
export type PlacedText = {
  str: string;
  x: number;
  y: number;
  width: number;
  size: number;
  font: string;
  /** Its letters are drawings of the document, whose height is not known: `size` is a guess by their width. */
  isDrawn: boolean;
  /** The library sees the end of a line after it. */
  hasEnd: boolean;
};

/** The texts of a page: those that are read, and those that stand across, as labels at a side and watermarks. */
type PageTexts = { upright: PlacedText[]; across: PlacedText[]; watermarks: string[] };

type Turned = { text: PlacedText; turn: number; isSkew: boolean };

/** A text that is turned by less than this, in degrees, is straight: scans are often read a little askew. */
const STRAIGHT = 5;
/** A skew text that is larger than the page's by this factor is a watermark. */
const WATERMARK_SCALE = 1.5;
/** So is one that stands on a page this many times. */
const WATERMARK_FROM = 3;
/** Width of a letter on average, as a part of the letters' height, and what it is in any font. */
const LETTER_WIDTH = 0.48;
const PLAUSIBLE_WIDTH = { from: 0.3, to: 0.8 };
/** Two equal texts that are nearer to each other than this part of their height are one that is drawn twice. */
const TWICE = 0.12;

/** Turns the texts of a page upright, and leaves out what is drawn a second time at its place. */
export function placeTexts(items: readonly GivenItem[], isDrawnFont: (font: string) => boolean): PageTexts {
  const drawnSizes = guessSizes(items, isDrawnFont);
  const turned = items.flatMap((item) => ("str" in item ? [turn(item, drawnSizes)] : []));
  const letters = [0, 0, 0, 0];
  for (const { text, turn: quarter, isSkew } of turned)
    if (!isSkew) letters[quarter] = (letters[quarter] ?? 0) + text.str.trim().length;
  const main = Math.max(0, letters.indexOf(Math.max(...letters)));
  const isNew = rememberPlaces();
  const found: PageTexts = { upright: [], across: [], watermarks: [] };
  const skew: PlacedText[] = [];
  for (const { text, turn: quarter, isSkew } of turned) {
    if (text.str.trim() !== "" && !isNew(text, quarter)) {
      if (text.hasEnd) found.upright.push({ ...text, str: "" });
    } else if (isSkew) skew.push(text);
    else (quarter === main || text.str === "" ? found.upright : found.across).push(text);
  }
  const size = commonestSize(found.upright);
  const times = Map.groupBy(skew, ({ str }) => str);
  for (const text of skew) {
    const isMark = text.size >= WATERMARK_SCALE * size || (times.get(text.str)?.length ?? 0) >= WATERMARK_FROM;
    if (isMark && /\p{L}{3}/u.test(text.str)) found.watermarks.push(text.str.trim());
    else found.across.push(text);
  }
  return found;
}

/** The height of the letters of each drawn font: as it is said, where their width fits to that, else by their width. */
function guessSizes(items: readonly GivenItem[], isDrawnFont: (font: string) => boolean): Map<string, number> {
  const sums = new Map<string, { width: number; height: number; letters: number }>();
  for (const item of items) {
    if (!("str" in item) || !isDrawnFont(item.fontName) || item.str.trim() === "") continue;
    const sum = sums.get(item.fontName) ?? { width: 0, height: 0, letters: 0 };
    const letters = item.str.length;
    const height = sum.height + item.height * letters;
    sums.set(item.fontName, { width: sum.width + item.width, height, letters: sum.letters + letters });
  }
  const sizeOf = ({ width, height, letters }: { width: number; height: number; letters: number }) => {
    const isPlausible = width >= PLAUSIBLE_WIDTH.from * height && width <= PLAUSIBLE_WIDTH.to * height;
    return isPlausible ? height / letters : width / letters / LETTER_WIDTH;
  };
  return new Map([...sums].map(([font, sum]) => [font, sizeOf(sum)]));
}

function turn(item: Extract<GivenItem, { str: string }>, drawnSizes: ReadonlyMap<string, number>): Turned {
  const { str, transform, width, height, fontName: font, hasEOL: hasEnd } = item;
  const [a = 1, b = 0, , , left = 0, bottom = 0] = transform;
  const angle = (Math.atan2(b, a) * 180) / Math.PI;
  const quarter = (Math.round(angle / 90) + 4) % 4;
  const isSkew = Math.abs(angle - Math.round(angle / 90) * 90) > STRAIGHT;
  const drawn = drawnSizes.get(font);
  const [x, y] = [
    [left, bottom],
    [bottom, -left],
    [-left, -bottom],
    [-bottom, left],
  ][quarter] ?? [left, bottom];
  const text = { str, x: x ?? 0, y: y ?? 0, width, size: drawn ?? height, font, isDrawn: drawn !== undefined, hasEnd };
  return { text, turn: quarter, isSkew };
}

/** Tells of a text whether it is the first one at its place: a second one makes letters bold, or throws a shadow. */
function rememberPlaces() {
  const places = new Map<string, [x: number, y: number][]>();
  return ({ str, x, y, size }: PlacedText, quarter: number): boolean => {
    const near = Math.max(TWICE * size, 0.01);
    const [column, row] = [Math.round(x / near), Math.round(y / near)];
    const keyOf = (dx: number, dy: number) => `${quarter} ${column + dx} ${row + dy} ${str}`;
    for (const dx of [-1, 0, 1]) {
      for (const dy of [-1, 0, 1]) {
        const others = places.get(keyOf(dx, dy)) ?? [];
        if (others.some(([ox, oy]) => Math.abs(ox - x) <= near && Math.abs(oy - y) <= near)) return false;
      }
    }
    places.set(keyOf(0, 0), [[x, y]]);
    return true;
  };
}

/** The size that most letters of a page have. */
export function commonestSize(texts: readonly PlacedText[]): number {
  const letters = new Map<number, number>();
  for (const { str, size } of texts) {
    const rounded = Math.round(size * 10) / 10;
    letters.set(rounded, (letters.get(rounded) ?? 0) + str.length);
  }
  return [...letters].sort((one, other) => other[1] - one[1])[0]?.[0] ?? 0;
}
