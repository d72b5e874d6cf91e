import { z } from "zod";
import { commonestSize, type PlacedText } from "./pdf-texts.ts";

/** What was written onto a page afterwards: into the fields of its form, or as a text of its own. */
export type Entry = { text: string; label: string; rect: Rect; isCheck: boolean };
/** The entries of a page, and how many other notes are on it that its reader sees no text of. */
export type Annotations = { entries: Entry[]; comments: number; stamps: number };

type Rect = readonly [left: number, bottom: number, right: number, top: number];

/** What the library tells of an annotation, as far as it is used. */
const annotationSchema = z.object({
  subtype: z.string(),
  annotationFlags: z.number().default(0),
  rect: z.tuple([z.number(), z.number(), z.number(), z.number()]),
  fieldType: z.string().nullish(),
  fieldName: z.string().nullish(),
  fieldValue: z.union([z.string(), z.array(z.string())]).nullish(),
  alternativeText: z.string().nullish(),
  contentsObj: z.object({ str: z.string() }).nullish(),
  checkBox: z.boolean().nullish(),
  radioButton: z.boolean().nullish(),
  buttonValue: z.string().nullish(),
  exportValue: z.string().nullish(),
  password: z.boolean().nullish(),
});
type Annotation = z.output<typeof annotationSchema>;

const INVISIBLE = 2 | 32; // the flags "hidden" and "no view"
const marks = new Set(["Text", "Highlight", "Underline", "Squiggly", "StrikeOut", "Caret", "Ink", "Square", "Circle"]);
/** Between an entry and a text of the same line, in points. */
const TOUCH = 3;

/** Tells what was written onto a page, in the order of the annotations. */
export function readAnnotations(annotations: readonly unknown[]): Annotations {
  const found: Annotations = { entries: [], comments: 0, stamps: 0 };
  for (const given of annotations) {
    const { data } = annotationSchema.safeParse(toPlain(given));
    if (!data || (data.annotationFlags & INVISIBLE) !== 0) continue;
    const text = textOf(data);
    const isCheck = data.checkBox === true || data.radioButton === true;
    const label = data.alternativeText?.trim() || data.fieldName?.trim() || "";
    if (text !== "") found.entries.push({ text, label, rect: data.rect, isCheck });
    else if (data.subtype === "Stamp") found.stamps += 1;
    else if (marks.has(data.subtype) && data.contentsObj?.str.trim()) found.comments += 1;
  }
  return found;
}

/** Rectangles may be typed arrays. */
const toPlain = (given: unknown) =>
  typeof given === "object" && given !== null && "rect" in given
    ? { ...given, rect: Array.from(given.rect as ArrayLike<number>) }
    : given;

function textOf({ subtype, fieldType, fieldValue, contentsObj, password, ...button }: Annotation): string {
  if (subtype === "FreeText") return contentsObj?.str.trim() ?? "";
  if (subtype !== "Widget" || password) return "";
  if (fieldType === "Btn") {
    const isOn = typeof fieldValue === "string" && fieldValue !== "Off" && fieldValue !== "";
    const isThis = button.checkBox ? button.exportValue : button.radioButton ? button.buttonValue : undefined;
    return isOn && isThis === fieldValue ? "[x]" : "";
  }
  if (fieldType !== "Tx" && fieldType !== "Ch") return "";
  return (Array.isArray(fieldValue) ? fieldValue.join(", ") : (fieldValue ?? "")).trim();
}

/**
 * Puts entries among the texts of an upright page: each on the line of its label, or on one of its own below what stands above
 * it, with the name that its field has.
 */
export function withEntries(texts: readonly PlacedText[], entries: readonly Entry[]): PlacedText[] {
  const placed = [...texts];
  const usual = commonestSize(texts) || 10;
  for (const entry of entries) {
    const [left, bottom, right, top] = entry.rect;
    const size = Math.max(1, Math.min(usual, (top - bottom) * 0.8));
    const made = { x: left, width: right - left, size, font: "", isDrawn: false };
    const isLevel = ({ str, y }: PlacedText) => str.trim() !== "" && y >= bottom - TOUCH && y < top;
    const before = lastIndexBy(placed, (text) => isLevel(text) && text.x + text.width <= left + TOUCH);
    const after = placed.findIndex((text) => isLevel(text) && text.x >= right - TOUCH);
    const at = entry.isCheck && after >= 0 ? after : before;
    const beside = placed[at];
    if (beside && at === after) placed.splice(at, 0, { ...made, str: `${entry.text} `, y: beside.y, hasEnd: false });
    else if (beside) {
      placed[at] = { ...beside, hasEnd: false };
      placed.splice(at + 1, 0, { ...made, str: ` ${entry.text}`, y: beside.y, hasEnd: beside.hasEnd });
    } else {
      const above = placed.findLastIndex(({ str, y }) => str.trim() !== "" && y >= top);
      const label = entry.label === "" ? "" : `${entry.label}: `;
      const over = placed[above];
      if (over) placed[above] = { ...over, hasEnd: true };
      placed.splice(above + 1, 0, { ...made, str: `${label}${entry.text}`, y: bottom, hasEnd: true });
    }
  }
  return placed;
}

/** The index of the text that fits and ends farthest to the right. */
function lastIndexBy(texts: readonly PlacedText[], fits: (text: PlacedText) => boolean): number {
  let found = -1;
  let end = Number.NEGATIVE_INFINITY;
  for (const [at, text] of texts.entries()) {
    if (!fits(text) || text.x + text.width < end) continue;
    [found, end] = [at, text.x + text.width];
  }
  return found;
}
