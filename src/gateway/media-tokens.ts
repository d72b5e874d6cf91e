import type { FilePart, ImagePart } from "./messages.ts";
import { type PictureSize, readPictureSize } from "./picture-size.ts";
import type { PictureRule } from "./providers/model.ts";

/** Base64 in which a picture's size is looked for, in characters: 192 KiB, which is more than cameras write before it. */
const HEAD_CHARACTERS = 1 << 18;

/** Of a model whose rule is not known: the largest that is documented of an open model (Qwen2.5-VL, its model card). */
const unknownRule: PictureRule = { side: 28, tokens: 1, most: 16_384 };

/**
 * "PDF support", "Estimate your costs": 1,500 to 3,000 tokens of text a page, and each page as a picture, at most 600 pages
 * (https://platform.claude.com/docs/en/build-with-claude/pdf-support). OpenAI reads text and pictures of the pages, too.
 */
const PAGE = { usual: 2_000, most: 3_000 };
const MAX_PAGES = 600;
/** Bytes of a page: it seldom has fewer than the first, and about as many as the second. */
const PAGE_BYTES = { least: 1 << 10, usual: 32 << 10 };
/** What a file behind a URL is taken for by an estimate, in bytes. */
const LINKED_BYTES = 512 << 10;

/** Tokens of a picture, by its size and its model's rule; of one whose size is not known the most that it can have. */
export function pictureTokens({ url, detail = "auto" }: Omit<ImagePart, "type">, rule = unknownRule): number {
  const { side, tokens, base = 0, most, mostOf } = rule;
  const largest = mostOf?.[detail] ?? most;
  const squares = countSquares(url, side) ?? largest;
  return base + Math.ceil(Math.min(squares, largest) * tokens);
}

/** How many squares cover a picture; undefined where its data do not say how large it is. */
function countSquares(url: string, side: number): number | undefined {
  const size = sizeOfPicture(url);
  return size && Math.ceil(size.width / side) * Math.ceil(size.height / side);
}

/** The size of a picture by its URL; undefined where that has no data, or they do not say it. */
export function sizeOfPicture(url: string): PictureSize | undefined {
  if (!url.startsWith("data:")) return undefined;
  const start = url.indexOf(",") + 1;
  return readPictureSize(Buffer.from(url.slice(start, start + HEAD_CHARACTERS), "base64"));
}

/** Tokens that a PDF is about, by its bytes. */
export const estimateFileTokens = (part: FilePart, rule?: PictureRule) =>
  Math.min(Math.ceil((bytesOf(part) ?? LINKED_BYTES) / PAGE_BYTES.usual), MAX_PAGES) * pageTokens(PAGE.usual, rule);

/** Tokens that a PDF has at most: more than one page a KiB have no more text than that. */
export const boundFileTokens = (part: FilePart, rule?: PictureRule) =>
  Math.min(Math.ceil((bytesOf(part) ?? Infinity) / PAGE_BYTES.least), MAX_PAGES) * pageTokens(PAGE.most, rule);

const pageTokens = (text: number, rule?: PictureRule) => text + pictureTokens({ url: "", detail: "high" }, rule);

/** Undefined for one that its provider reads from a URL. */
const bytesOf = ({ url }: FilePart) => (url.startsWith("data:") ? (url.length * 3) / 4 : undefined);
