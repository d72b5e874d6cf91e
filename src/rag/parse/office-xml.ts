import { SaxesParser, type SaxesTagPlain } from "saxes";
import { unreadable } from "./section.ts";

/** An element. Its names have the prefixes of `prefixes`, whatever the file calls them. */
export type XmlNode = { name: string; attributes: Readonly<Record<string, string>>; children: XmlChild[] };
type XmlChild = XmlNode | string;

const MAX_DEPTH = 256;
const MAX_NODES = 600_000; // of what is held in memory at once
const MAX_TOKEN = 32 << 20; // characters between two tags
const MAX_PREFIXES = 1_000;

/** The prefixes that this reader uses for namespaces, in both editions of the standard. */
const prefixes: Readonly<Record<string, string>> = {
  "wordprocessingml/2006/main": "w",
  "wordprocessingml/main": "w",
  "spreadsheetml/2006/main": "x",
  "spreadsheetml/main": "x",
  "presentationml/2006/main": "p",
  "presentationml/main": "p",
  "drawingml/2006/main": "a",
  "drawingml/main": "a",
  "drawingml/2006/wordprocessingDrawing": "wp",
  "drawingml/wordprocessingDrawing": "wp",
  "drawingml/2006/spreadsheetDrawing": "xdr",
  "drawingml/spreadsheetDrawing": "xdr",
  "drawingml/2006/picture": "pic",
  "drawingml/picture": "pic",
  "drawingml/2006/chart": "c",
  "drawingml/chart": "c",
  "drawingml/2006/diagram": "dgm",
  "drawingml/diagram": "dgm",
  "officeDocument/2006/math": "m",
  "officeDocument/math": "m",
  "officeDocument/2006/relationships": "r",
  "officeDocument/relationships": "r",
  "markup-compatibility/2006": "mc",
  "office/word/2010/wordml": "w14",
  "urn:schemas-microsoft-com:vml": "v",
  "urn:schemas-microsoft-com:office:office": "o",
  "dc/elements/1.1/": "dc",
};

/**
 * Reads XML as it arrives, and gives each element that is not one of `containers` and stands in none but those, as soon as it
 * is complete. So a document is never in memory as a whole. Entities are not expanded, and a document type is refused.
 * @throws AppError `source_unreadable`
 */
export async function readXml(
  text: AsyncIterable<string>,
  containers: ReadonlySet<string>,
  onUnit: (unit: XmlNode) => void | Promise<void>,
): Promise<void> {
  const builder = makeBuilder(containers);
  for await (const part of text) {
    for (const unit of builder.write(part)) await onUnit(unit);
  }
  for (const unit of builder.end()) await onUnit(unit);
}

/** Reads XML that is small enough to be held as a whole: its root. @throws AppError `source_unreadable` */
export async function readTree(text: AsyncIterable<string>): Promise<XmlNode> {
  let root: XmlNode | undefined;
  await readXml(text, new Set(), (unit) => {
    root = unit;
  });
  return root ?? { name: "", attributes: {}, children: [] };
}

function makeBuilder(containers: ReadonlySet<string>) {
  const parser = new SaxesParser({ position: false, xmlns: false });
  const nameOf = makeNames();
  const open: XmlNode[] = []; // of the unit that is read
  let depth = 0;
  let nodes = 0;
  let sinceToken = 0;
  let complete: XmlNode[] = [];
  const addText = (value: string) => {
    const parent = open.at(-1);
    if (parent && (/\S/.test(value) || textNames.has(parent.name))) parent.children.push(value);
  };
  parser.on("opentag", (tag: SaxesTagPlain) => {
    sinceToken = 0;
    const { name, attributes } = nameOf(tag);
    depth += 1;
    if (depth > MAX_DEPTH) throw unreadable("Its parts are nested too deeply.");
    if (open.length === 0 && containers.has(name)) return;
    const node: XmlNode = { name, attributes, children: [] };
    if (open.length > 0 && unread.has(name)) return void open.push(node);
    nodes += 1;
    if (nodes > MAX_NODES) throw unreadable(`One of its parts has more than ${MAX_NODES} elements.`);
    open.at(-1)?.children.push(node);
    open.push(node);
  });
  parser.on("closetag", () => {
    sinceToken = 0;
    depth -= 1;
    const closed = open.pop();
    if (closed === undefined || open.length > 0) return;
    complete.push(closed);
    nodes = 0;
  });
  parser.on("text", addText);
  parser.on("cdata", addText);
  parser.on("doctype", () => {
    throw unreadable("It declares a document type, which an office document does not.");
  });
  parser.on("error", (error) => {
    throw unreadable("The document is damaged.", error);
  });
  const take = () => {
    const units = complete;
    complete = [];
    return units;
  };
  return {
    write(text: string): XmlNode[] {
      sinceToken += text.length;
      if (sinceToken > MAX_TOKEN) throw unreadable("It has a text without an end.");
      parser.write(text);
      return take();
    },
    end(): XmlNode[] {
      parser.close();
      return take();
    },
  };
}

/** Elements that are most of what Word writes, and say nothing of the text. They are not kept. */
const unread: ReadonlySet<string> = new Set(
  (
    "w:b w:bCs w:i w:iCs w:u w:sz w:szCs w:color w:lang w:highlight w:kern w:noProof w:spacing w:ind w:jc w:keepNext w:keepLines " +
    "w:contextualSpacing w:tabs w:pBdr w:shd w:tcW w:tcBorders w:tcMar w:vAlign w:trHeight w:bookmarkStart w:bookmarkEnd " +
    "w:proofErr w:lastRenderedPageBreak a:ln a:latin a:ea a:cs a:solidFill a:effectLst a:prstGeom a:extLst"
  ).split(" "),
);

/** Elements whose blanks are text. */
const textNames: ReadonlySet<string> = new Set(["w:t", "a:t", "m:t", "x:t", "x:v"]);

type Names = { name: string; attributes: Record<string, string> };

/** Gives names the prefixes of `prefixes`. A prefix is taken to mean one namespace in all of a part. */
function makeNames() {
  const known = new Map<string, string>();
  const canonical = (name: string, isElement: boolean): string => {
    const colon = name.indexOf(":");
    if (colon === -1 && !isElement) return name;
    const to = known.get(name.slice(0, Math.max(0, colon)));
    return to === undefined ? name : `${to}:${name.slice(colon + 1)}`;
  };
  return (tag: SaxesTagPlain): Names => {
    const names = Object.keys(tag.attributes);
    for (const name of names) {
      if (name === "xmlns" || name.startsWith("xmlns:")) declare(known, name.slice(6), tag.attributes[name] ?? "");
    }
    const isOurs = names.every((name) => canonical(name, false) === name);
    const attributes = isOurs
      ? tag.attributes
      : Object.fromEntries(names.map((name) => [canonical(name, false), tag.attributes[name] ?? ""]));
    return { name: canonical(tag.name, true), attributes };
  };
}

function declare(known: Map<string, string>, prefix: string, uri: string): void {
  const key = uri.replace(
    /^http:\/\/(schemas\.openxmlformats\.org|purl\.oclc\.org\/ooxml|schemas\.microsoft\.com|purl\.org)\//,
    "",
  );
  const to = prefixes[key];
  if (to === undefined) known.delete(prefix);
  else if (known.size < MAX_PREFIXES && to !== prefix) known.set(prefix, to);
}

/** The elements below a node. */
export function elementsOf(node: XmlNode | undefined): XmlNode[] {
  return node?.children.filter((child): child is XmlNode => typeof child !== "string") ?? [];
}

/** The first element of a name below a node. */
export function childOf(node: XmlNode | undefined, name: string): XmlNode | undefined {
  for (const child of node?.children ?? []) if (typeof child !== "string" && child.name === name) return child;
  return undefined;
}

/** An attribute of the first element of a name below a node; `w:val` unless another is named. */
export function settingOf(node: XmlNode | undefined, name: string, attribute = "w:val"): string | undefined {
  return childOf(node, name)?.attributes[attribute];
}

/** The text right below a node. */
export function textIn(node: XmlNode): string {
  return node.children.filter((child) => typeof child === "string").join("");
}

/** All elements of a name below a node, in their order. */
export function findAll(node: XmlNode, name: string): XmlNode[] {
  return elementsOf(node).flatMap((child) => (child.name === name ? [child] : findAll(child, name)));
}

/** Whether an element that switches something, as `<w:strike/>`, says on; undefined if it is not there. */
export function switchOf(node: XmlNode | undefined, name: string): boolean | undefined {
  const found = childOf(node, name);
  if (!found) return undefined;
  return !/^(0|false|off|none)$/.test(found.attributes["w:val"] ?? "1");
}
