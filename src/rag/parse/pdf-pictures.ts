import { OPS } from "unpdf/pdfjs";

/** The drawing commands of a page as the library lists them. */
export type Drawing = { fnArray: readonly number[]; argsArray: readonly unknown[] };

/** What of a page is drawn: the shares of its area that pictures have, and how many shapes there are. */
export type Drawn = { pictures: number[]; shapes: number };

type Matrix = readonly [number, number, number, number, number, number];

const unit: Matrix = [1, 0, 0, 1, 0, 0];
const isChange = new Set<number>([OPS.save, OPS.restore, OPS.transform, OPS.dependency, OPS.setGState]);
/** Below this a picture is no more than a line or a dot, as a share of the page's area. */
const LEAST_SHARE = 0.0005;

/**
 * Finds the pictures of a page in a document that was opened with `maxImageSize: 0`, so that none is decoded, whatever its
 * size. The library leaves the command away then: where a coordinate system is made and nothing is drawn in it, there was a
 * picture, which fills its unit square.
 */
export function findDrawn({ fnArray, argsArray }: Drawing, pageArea: number): Drawn {
  const found: Drawn = { pictures: [], shapes: 0 };
  const stack: { matrix: Matrix; isMade: boolean }[] = [];
  let now = { matrix: unit, isMade: false }; // `isMade`: in this state a coordinate system was made, and nothing drawn
  const close = () => {
    const [a, b, c, d] = now.matrix;
    const share = Math.abs(a * d - b * c) / pageArea;
    if (now.isMade && share >= LEAST_SHARE) found.pictures.push(Math.min(1, share));
  };
  for (const [at, command] of fnArray.entries()) {
    if (command === OPS.save || command === OPS.paintFormXObjectBegin) {
      stack.push(now);
      now = { matrix: now.matrix, isMade: false };
    }
    if (command === OPS.transform || command === OPS.paintFormXObjectBegin) {
      const given = toMatrix(command === OPS.transform ? argsArray[at] : firstOf(argsArray[at]));
      if (given) now = { matrix: multiply(now.matrix, given), isMade: command === OPS.transform };
    }
    if (command === OPS.restore || command === OPS.paintFormXObjectEnd) {
      close();
      now = stack.pop() ?? { matrix: unit, isMade: false };
      if (now.isMade) now = { ...now, isMade: false };
    }
    if (command === OPS.constructPath || command === OPS.shadingFill) found.shapes += 1;
    if (!isChange.has(command)) now.isMade = false;
  }
  close();
  return found;
}

const firstOf = (value: unknown): unknown => (Array.isArray(value) ? value[0] : undefined);

function toMatrix(value: unknown): Matrix | undefined {
  if (!Array.isArray(value) && !ArrayBuffer.isView(value)) return undefined;
  const [a, b, c, d, e, f, ...more] = Array.from(value as ArrayLike<unknown>, Number);
  const isSix = f !== undefined && more.length === 0;
  return isSix ? [a ?? 1, b ?? 0, c ?? 0, d ?? 1, e ?? 0, f] : undefined;
}

function multiply([a, b, c, d, e, f]: Matrix, [g, h, i, j, k, l]: Matrix): Matrix {
  return [a * g + c * h, b * g + d * h, a * i + c * j, b * i + d * j, a * k + c * l + e, b * k + d * l + f];
}
