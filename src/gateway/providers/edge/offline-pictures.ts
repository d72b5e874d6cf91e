import { sizeOfPicture } from "../../media-tokens.ts";
import type { Content, ImagePart } from "../../messages.ts";

/** Pictures that an answer describes one by one. */
const MAX_DESCRIBED = 10;

/** What can be said of pictures without seeing them, as sentences; empty where there are none. */
export function describePictures(contents: readonly Content[]): string {
  const pictures = contents.flatMap((content) =>
    typeof content === "string" ? [] : content.filter((part) => part.type === "image"),
  );
  const [only] = pictures;
  if (!only) return "";
  const closing = "I am an offline model and do not see what is in pictures.";
  if (pictures.length === 1) return `The picture is ${describe(only)}. ${closing}`;
  const described = pictures.slice(0, MAX_DESCRIBED).map((one, place) => `Picture ${place + 1} is ${describe(one)}.`);
  return [`There are ${pictures.length} pictures.`, ...described, closing].join(" ");
}

function describe({ url }: ImagePart): string {
  const format = /^data:image\/(\w{1,10});/.exec(url)?.[1];
  if (format === undefined) return `behind a link to ${URL.parse(url)?.host ?? "a page"}, which I do not open`;
  const size = sizeOfPicture(url);
  const name = `a ${format === "webp" ? "WebP" : format.toUpperCase()}`;
  return size ? `${name} of ${size.width} by ${size.height} pixels` : `${name} of a size that it does not report`;
}
