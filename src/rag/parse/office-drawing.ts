import { type GridCell, isData, type Repetition, writeGrid, writeInCell } from "./office-grid.ts";
import { type Inline, joinInlines } from "./office-inline.ts";
import type { LeftOut } from "./office-left-out.ts";
import { writeMath } from "./office-math.ts";
import { formatNumber } from "./office-number-format.ts";
import { childOf, elementsOf, findAll, textIn, type XmlNode } from "./office-xml.ts";

/** What is known while the shapes of a slide or a sheet are read. */
export type DrawingContext = {
  leftOut: LeftOut;
  repetition: Repetition;
  /** The texts of charts and diagrams, by the id of the relationship. */
  graphics: ReadonlyMap<string, string>;
  /** Whether the paragraphs of its places for text are items, as on a slide. */
  hasLists: boolean;
  page?: number;
};

/** A shape with text: its lines, and what it is for in a slide (`title`, `body`, `ftr` and so on). */
export type Shape = { text: string; place?: string };

const lists: ReadonlySet<string> = new Set(["body", "obj", ""]);

/** Reads the shapes below a node, in their order. What is hidden is left out. */
export function readShapes(node: XmlNode, context: DrawingContext): Shape[] {
  return elementsOf(node).flatMap((child) => readShape(child, context));
}

function readShape(node: XmlNode, context: DrawingContext): Shape[] {
  const { leftOut, page } = context;
  const about = findAbout(node);
  if (about?.hidden === "1" || about?.hidden === "true") {
    leftOut.add("hiddenText", page);
    return [];
  }
  switch (node.name.slice(node.name.indexOf(":") + 1)) {
    case "sp":
    case "cxnSp":
      return readTextShape(node, context);
    case "pic": {
      leftOut.add("picture", page);
      const text = descriptionOf(about);
      return text === undefined ? [] : [{ text }];
    }
    case "graphicFrame":
      return readFrame(node, context);
    case "AlternateContent":
      for (const form of elementsOf(node)) {
        const before = leftOut.total();
        const shapes = readShapes(form, context);
        if (shapes.length > 0 || leftOut.total() > before) return shapes;
      }
      return [];
    default:
      return readShapes(node, context);
  }
}

function readTextShape(node: XmlNode, context: DrawingContext): Shape[] {
  const place = placeOf(node);
  const body = elementsOf(node).find(({ name }) => name.endsWith(":txBody"));
  if (!body) return [];
  const text = readParagraphs(body, { ...context, isList: context.hasLists && lists.has(place ?? "title") });
  return text === "" ? [] : [{ text, ...(place === undefined ? {} : { place }) }];
}

function readFrame(node: XmlNode, context: DrawingContext): Shape[] {
  const { leftOut, page, graphics, repetition } = context;
  const table = findAll(node, "a:tbl")[0];
  if (table) {
    const grid = { rows: findRows(table, context) };
    const text = isData(grid) ? writeGrid(grid, repetition) : writeInCell(grid);
    return text === "" ? [] : [{ text }];
  }
  const chart = findAll(node, "c:chart")[0]?.attributes["r:id"];
  const diagram = findAll(node, "dgm:relIds")[0]?.attributes["r:dm"];
  const text = graphics.get(chart ?? diagram ?? "");
  if (text !== undefined) return [{ text }];
  leftOut.add(chart !== undefined || diagram !== undefined ? "chart" : "object", page);
  return [];
}

function findRows(table: XmlNode, context: DrawingContext): GridCell[][] {
  const rows = elementsOf(table).filter(({ name }) => name === "a:tr");
  return rows.map((row) =>
    elementsOf(row)
      .filter(({ name, attributes }) => name === "a:tc" && !isOn(attributes.hMerge))
      .map((cell) => {
        const columns = spanOf(cell.attributes.gridSpan);
        if (isOn(cell.attributes.vMerge)) return { text: "", columns, isContinued: true };
        const body = childOf(cell, "a:txBody");
        const text = body ? readParagraphs(body, { ...context, isList: false }) : "";
        return { text: text.replace(/\s+/g, " "), columns };
      }),
  );
}

type Counter = { type: string; value: number };

/** Reads the paragraphs of a text, with their numbers. Those of a list have dashes. */
function readParagraphs(body: XmlNode, context: DrawingContext & { isList: boolean }): string {
  const counters: (Counter | undefined)[] = [];
  const lines = elementsOf(body).flatMap((paragraph) => {
    if (paragraph.name !== "a:p") return [];
    const text = joinInlines(readRuns(paragraph, context)).trim();
    if (text === "") return [];
    const properties = childOf(paragraph, "a:pPr");
    const level = Math.min(8, Number.parseInt(properties?.attributes.lvl ?? "0", 10) || 0);
    const label = labelOf(properties, level, counters);
    const dash =
      childOf(properties, "a:buChar") || (context.isList && !childOf(properties, "a:buNone")) ? "-" : undefined;
    const mark = label ?? dash;
    return [mark === undefined ? text : `${"  ".repeat(level)}${mark} ${text}`];
  });
  return lines.join("\n");
}

function labelOf(
  properties: XmlNode | undefined,
  level: number,
  counters: (Counter | undefined)[],
): string | undefined {
  const auto = childOf(properties, "a:buAutoNum");
  counters.length = Math.min(counters.length, level + 1); // what stands deeper starts again
  if (!auto) {
    counters[level] = undefined;
    return undefined;
  }
  const { type = "arabicPeriod", startAt = "1" } = auto.attributes;
  const last = counters[level];
  const value = last?.type === type ? last.value + 1 : Number.parseInt(startAt, 10) || 1;
  counters[level] = { type, value };
  const format = numberFormats.find(([start]) => type.startsWith(start))?.[1] ?? "decimal";
  const number = formatNumber(value, format);
  if (type.endsWith("ParenBoth")) return `(${number})`;
  return type.endsWith("ParenR") ? `${number})` : type.endsWith("Plain") ? number : `${number}.`;
}

const numberFormats = [
  ["alphaLc", "lowerLetter"],
  ["alphaUc", "upperLetter"],
  ["romanLc", "lowerRoman"],
  ["romanUc", "upperRoman"],
] as const;

function readRuns(node: XmlNode, context: DrawingContext): Inline[] {
  return elementsOf(node).flatMap((child): Inline[] => {
    if (child.name === "a:br") return [{ text: "\n" }];
    if (child.name === "m:oMath") {
      const text = writeMath(child);
      if (text === undefined) context.leftOut.add("equation", context.page);
      return text === undefined ? [] : [{ text }];
    }
    if (child.name === "mc:AlternateContent") {
      return (
        elementsOf(child)
          .map((form) => readRuns(form, context))
          .find((runs) => runs.length > 0) ?? []
      );
    }
    if (child.name !== "a:r" && child.name !== "a:fld")
      return child.name.endsWith("Pr") ? [] : readRuns(child, context);
    const { strike = "noStrike", baseline = "0" } = childOf(child, "a:rPr")?.attributes ?? {};
    const raised = Number.parseInt(baseline, 10) || 0;
    const script = raised > 0 ? "^" : raised < 0 ? "_" : undefined;
    const text = elementsOf(child)
      .filter(({ name }) => name === "a:t")
      .map(textIn)
      .join("")
      .replaceAll("\v", "\n");
    return [{ text, ...(strike === "noStrike" ? {} : { isStruck: true }), ...(script ? { script } : {}) }];
  });
}

/** What describes a picture, unless it is the name of a file. */
export function descriptionOf(attributes: Readonly<Record<string, string>> = {}): string | undefined {
  const text = (attributes.descr ?? "").replace(/\s+/g, " ").trim();
  return text === "" || /^\S+\.\w{3,4}$/.test(text) ? undefined : `[Picture: ${text.slice(0, 2_000)}]`;
}

/** The properties that a shape has besides its look: whether it is hidden, what describes it. */
function findAbout(node: XmlNode): Readonly<Record<string, string>> | undefined {
  const about = elementsOf(node).find(({ name }) => /:nv\w*Pr$/.test(name));
  return elementsOf(about).find(({ name }) => name.endsWith(":cNvPr"))?.attributes;
}

/** What a shape of a slide is a place for; "" is a place for anything. */
function placeOf(node: XmlNode): string | undefined {
  const mark = childOf(childOf(childOf(node, "p:nvSpPr"), "p:nvPr"), "p:ph");
  return mark ? (mark.attributes.type ?? "") : undefined;
}

function isOn(value: string | undefined): boolean {
  return value === "1" || value === "true";
}

function spanOf(value: string | undefined): number {
  return Math.min(1_000, Math.max(1, Number.parseInt(value ?? "1", 10) || 1));
}
