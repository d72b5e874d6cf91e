import { nameOf } from "./csv.ts";
import { type DrawingContext, readShapes } from "./office-drawing.ts";
import { readGraphics } from "./office-graphics.ts";
import { makeRepetition, type Repetition } from "./office-grid.ts";
import { type LeftOut, makeLeftOut } from "./office-left-out.ts";
import { findRelated, type OfficePackage, titleOf } from "./office-package.ts";
import { childOf, elementsOf, readTree } from "./office-xml.ts";
import { firstLineOf, type ParsedDocument, type Section, tidy } from "./section.ts";

type Deck = { file: OfficePackage; leftOut: LeftOut; repetition: Repetition; feet: Set<string> };
type Slide = { title?: string; text: string };

/**
 * Reads a presentation: each slide a section in the order in which they are shown, its title as heading, its number as page,
 * and what the speaker has noted behind it. @throws AppError `source_unreadable`
 */
export async function parsePptx(file: OfficePackage, main: string, name: string): Promise<ParsedDocument> {
  const deck: Deck = { file, leftOut: makeLeftOut(), repetition: makeRepetition(), feet: new Set() };
  const sections: Section[] = [];
  let title: string | undefined;
  for (const [at, part] of (await slidesOf(file, main)).entries()) {
    const page = at + 1;
    const slide = await readSlide(deck, part, page);
    title ??= slide?.title;
    const text = tidy(slide?.text ?? "");
    if (text !== "") sections.push({ text, page, ...(slide?.title ? { headings: [slide.title.slice(0, 200)] } : {}) });
  }
  const named = title ?? (await titleOf(file)) ?? nameOf(name) ?? firstLineOf(sections[0]?.text ?? "");
  return { type: "pptx", sections, ...(named ? { title: named } : {}), ...deck.leftOut.warnings() };
}

/** The parts of the slides, in their order, each once. */
async function slidesOf(file: OfficePackage, main: string): Promise<string[]> {
  const links = await file.relationships(main);
  const list = childOf(await readTree(file.read(main)), "p:sldIdLst");
  const targets = elementsOf(list).map(({ attributes }) => links.get(attributes["r:id"] ?? "")?.target);
  return [...new Set(targets.filter((target) => target !== undefined && file.has(target)))].filter(
    (one) => one !== undefined,
  );
}

async function readSlide(deck: Deck, part: string, page: number): Promise<Slide | undefined> {
  const { file, leftOut, repetition } = deck;
  const root = await readTree(file.read(part));
  if (root.attributes.show === "0" || root.attributes.show === "false") {
    leftOut.add("hiddenSlide", page);
    return undefined;
  }
  const context: DrawingContext = {
    leftOut,
    repetition,
    page,
    hasLists: true,
    graphics: await readGraphics(file, part),
  };
  const tree = childOf(childOf(root, "p:cSld"), "p:spTree");
  const shapes = tree ? readShapes(tree, context) : [];
  const isTitle = (place: string | undefined) => place === "title" || place === "ctrTitle";
  const first = shapes.find(({ place }) => isTitle(place));
  const title = first?.text.replace(/\s+/g, " ");
  const others = shapes.filter((shape) => shape !== first && isOwn(shape, deck));
  const notes = await readNotes(deck, part, context);
  const texts = [
    ...(title ? [title] : []),
    ...others.map(({ text }) => text),
    ...(notes === "" ? [] : [`Notes: ${notes}`]),
  ];
  return { ...(title ? { title } : {}), text: texts.join("\n\n") };
}

/** Whether a shape is of its slide: not its number or the date. A foot that all slides have is read on the first one. */
function isOwn({ place, text }: { place?: string; text: string }, { feet }: Deck): boolean {
  if (place === "sldNum" || place === "dt") return false;
  if (place !== "ftr" && place !== "hdr") return true;
  if (feet.has(text)) return false;
  feet.add(text);
  return true;
}

async function readNotes({ file }: Deck, slide: string, context: DrawingContext): Promise<string> {
  const part = await findRelated(file, slide, "notesSlide");
  if (part === undefined) return "";
  const tree = childOf(childOf(await readTree(file.read(part)), "p:cSld"), "p:spTree");
  const shapes = tree ? readShapes(tree, { ...context, hasLists: false }) : [];
  const own = shapes.filter(({ place }) => place === undefined || place === "body");
  return own.map(({ text }) => text).join("\n");
}
