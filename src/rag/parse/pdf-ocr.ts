import { createIsomorphicCanvasFactory, getDocumentProxy, renderPageAsImage } from "unpdf";
import { type OcrOptions, startOcr } from "./ocr.ts";

/** A page is drawn so that a point has this many dots: 250 per inch. */
const DOTS_PER_POINT = 250 / 72;
/** Most dots of a page that is drawn, whatever its size. */
const MAX_DOTS = 9_000_000;
/** Larger pictures are not decoded: one takes up to twelve bytes for each dot. */
const MAX_PICTURE_DOTS = 36_000_000;
/** Fewer letters are no text but spots. */
const MIN_LETTERS = 3;

const loadCanvas = () => import("@napi-rs/canvas");

/**
 * Draws pages of a PDF and recognizes their text. A page that has none, cannot be drawn, or is not reached in time is not in
 * the result; the pages before it are.
 */
export async function recognizePages(
  bytes: Uint8Array,
  pages: readonly number[],
  options: OcrOptions,
): Promise<ReadonlyMap<number, string>> {
  const found = new Map<number, string>();
  const CanvasFactory = await createIsomorphicCanvasFactory(loadCanvas);
  const ocr = await startOcr(options);
  try {
    const pdf = await getDocumentProxy(new Uint8Array(bytes), {
      verbosity: 0,
      CanvasFactory,
      maxImageSize: MAX_PICTURE_DOTS,
    });
    try {
      for (const number of pages) {
        if (ocr.msLeft() <= 0) break;
        const text = await recognize(pdf, number, ocr.read);
        if ((text?.match(/\p{L}/gu)?.length ?? 0) >= MIN_LETTERS) found.set(number, text ?? "");
      }
    } finally {
      await pdf.loadingTask.destroy();
    }
  } finally {
    await ocr.close();
  }
  return found;
}

async function recognize(
  pdf: Awaited<ReturnType<typeof getDocumentProxy>>,
  number: number,
  read: (picture: Uint8Array) => Promise<string>,
): Promise<string | undefined> {
  try {
    const page = await pdf.getPage(number);
    const { width, height } = page.getViewport({ scale: 1 });
    const scale = Math.min(DOTS_PER_POINT, Math.sqrt(MAX_DOTS / (width * height)));
    const picture = await renderPageAsImage(pdf, number, { canvasImport: loadCanvas, scale });
    page.cleanup();
    return await read(new Uint8Array(picture));
  } catch {
    return undefined; // the page stays without text, as a warning says
  }
}
