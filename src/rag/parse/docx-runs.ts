import { codePoint } from "dingbat-to-unicode";
import type { Block, DocxContext } from "./docx-context.ts";
import { markOf } from "./docx-notes.ts";
import { type Look, lookOf, merged } from "./docx-styles.ts";
import { descriptionOf } from "./office-drawing.ts";
import type { Inline } from "./office-inline.ts";
import { writeMath } from "./office-math.ts";
import { childOf, elementsOf, findAll, settingOf, switchOf, textIn, type XmlNode } from "./office-xml.ts";

/** What is read of a paragraph: its line, and the boxes that are anchored in it. */
export type Line = { pieces: Inline[]; boxes: Block[] };
/** Reads what stands in a text box. */
type ReadBox = (content: XmlNode) => Block[];

/** A field that is open: where its instruction begins, and what that says. */
type Field = { from: number; instruction: string; start: XmlNode };
type State = Line & { context: DocxContext; look: Look; font: string; fields: Field[]; readBox: ReadBox };

/** What holds no text of the document, or text that was deleted. */
const unread: ReadonlySet<string> = new Set(
  (
    "w:pPr w:rPr w:sdtPr w:sdtEndPr w:del w:moveFrom w:delText w:delInstrText w:tblPr w:tblGrid w:rubyPr w:customXmlPr " +
    "w:smartTagPr w:footnoteRef w:endnoteRef w:annotationRef w:sectPr w:softHyphen"
  ).split(" "),
);

/** Reads the runs of a paragraph. `look` is that of its style. */
export function readLine(paragraph: XmlNode, options: { context: DocxContext; look: Look; readBox: ReadBox }): Line {
  const state: State = { ...options, pieces: [], boxes: [], fields: [], font: "" };
  for (const child of elementsOf(paragraph)) visit(child, state);
  return { pieces: state.pieces, boxes: state.boxes };
}

const readers: Readonly<Record<string, (node: XmlNode, state: State) => void>> = {
  "w:r": readRun,
  "w:t": (node, state) =>
    push(
      state,
      textIn(node).replace(signs, (sign) => signOf(sign, state)),
    ),
  "a:t": (node, state) => push(state, textIn(node)),
  "w:tab": (_, state) => push(state, "\t"),
  "w:ptab": (_, state) => push(state, "\t"),
  "w:br": (_, state) => push(state, "\n"),
  "w:cr": (_, state) => push(state, "\n"),
  "w:noBreakHyphen": (_, state) => push(state, "-"),
  "w:sym": readSymbol,
  "w:footnoteReference": (node, state) => pushMark(node, "f", state),
  "w:endnoteReference": (node, state) => pushMark(node, "e", state),
  "w:fldChar": readFieldChar,
  "w:instrText": (node, { fields }) => {
    const field = fields.at(-1);
    if (field) field.instruction += textIn(node).slice(0, 1_000);
  },
  "w:ruby": readRuby,
  "m:oMath": readMath,
  "m:oMathPara": (node, state) => {
    for (const [at, equation] of findAll(node, "m:oMath").entries()) {
      if (at > 0) push(state, "\n");
      readMath(equation, state);
    }
  },
  "mc:AlternateContent": readAlternatives,
  "w:txbxContent": (node, state) => void state.boxes.push(...state.readBox(node)),
  "w:drawing": readDrawing,
  "pic:pic": (_, { context }) => context.leftOut.add("picture"),
  "v:imagedata": (_, { context }) => context.leftOut.add("picture"),
  "c:chart": (node, state) => readGraphic(node.attributes["r:id"], state),
  "dgm:relIds": (node, state) => readGraphic(node.attributes["r:dm"], state),
  "w:object": readObject,
  "w:altChunk": (_, { context }) => context.leftOut.add("object"),
  "w:subDoc": (_, { context }) => context.leftOut.add("object"),
  "w:commentReference": (_, { context }) => context.leftOut.add("comment"),
  "v:textpath": (node, state) => {
    const text = node.attributes.string ?? "";
    if (text.trim() !== "") state.boxes.push({ text });
  },
};

/** Whatever is not known is looked through: text is lost in no wrapper. */
function visit(node: XmlNode, state: State): void {
  if (unread.has(node.name)) return;
  const reader = readers[node.name];
  if (reader) reader(node, state);
  else for (const child of elementsOf(node)) visit(child, state);
}

function readRun(run: XmlNode, state: State): void {
  const properties = childOf(run, "w:rPr");
  const style = settingOf(properties, "w:rStyle");
  const outer = state.look;
  state.font = settingOf(properties, "w:rFonts", "w:ascii") ?? "";
  state.look = merged([lookOf(properties), state.context.styles.character(style), outer]);
  if (state.look.isHidden !== true) for (const child of elementsOf(run)) visit(child, state);
  else {
    if (elementsOf(run).some(({ name }) => name === "w:t")) state.context.leftOut.add("hiddenText");
    for (const child of elementsOf(run))
      if (child.name === "w:fldChar" || child.name === "w:instrText") visit(child, state);
  }
  state.look = outer;
}

function push({ pieces, look }: State, text: string): void {
  if (text === "") return;
  const script = look.script === "plain" ? undefined : look.script;
  pieces.push({ text, ...(look.isStruck ? { isStruck: true } : {}), ...(script ? { script } : {}) });
}

function pushMark(node: XmlNode, kind: "f" | "e", state: State): void {
  const mark = markOf(node, kind, state.context);
  if (mark !== undefined) state.pieces.push({ text: mark });
}

/** Places of fonts of signs, as Symbol and Wingdings. */
const signs = /[\uf020-\uf0ff]/g;

function readSymbol(node: XmlNode, state: State): void {
  const { "w:font": font = "", "w:char": char = "" } = node.attributes;
  const code = Number.parseInt(char, 16);
  if (Number.isNaN(code) || code > 0x10ffff) return;
  state.font = font;
  push(state, signOf(String.fromCodePoint(code), state));
}

/** A sign of a font of signs. What other fonts have in its place cannot be known. */
function signOf(sign: string, { font, context }: State): string {
  const code = sign.codePointAt(0) ?? 0;
  const low = code >= 0xf000 && code <= 0xf0ff ? code - 0xf000 : code;
  const known = codePoint(font, low)?.string ?? (low === code ? sign : undefined);
  if (known === undefined) context.leftOut.add("symbol");
  return known ?? "";
}

/** A field shows its result; what stands before that is its instruction. */
function readFieldChar(node: XmlNode, state: State): void {
  const { pieces, fields } = state;
  const type = node.attributes["w:fldCharType"];
  if (type === "begin") return void fields.push({ from: pieces.length, instruction: "", start: node });
  const field = fields.at(-1);
  if (!field) return;
  if (type === "separate") {
    pieces.length = Math.min(pieces.length, field.from);
    field.from = Number.POSITIVE_INFINITY; // what follows is kept
  }
  if (type !== "end") return;
  fields.pop();
  if (field.from === Number.POSITIVE_INFINITY) return;
  pieces.length = Math.min(pieces.length, field.from);
  if (/^\s*EQ\b/i.test(field.instruction)) state.context.leftOut.add("equation");
  push(state, formValue(childOf(field.start, "w:ffData")));
}

/** The value of a field of a form that has no text of its own: a box that is checked or not, a choice of a list. */
function formValue(form: XmlNode | undefined): string {
  const box = childOf(form, "w:checkBox");
  if (box) return (switchOf(box, "w:checked") ?? switchOf(box, "w:default")) === true ? "☒" : "☐";
  const list = childOf(form, "w:ddList");
  const entries = elementsOf(list).filter(({ name }) => name === "w:listEntry");
  const chosen = settingOf(list, "w:result") ?? settingOf(list, "w:default") ?? "0";
  return entries[Number.parseInt(chosen, 10)]?.attributes["w:val"] ?? "";
}

/** Letters, and in brackets how they are read. */
function readRuby(node: XmlNode, state: State): void {
  for (const [name, before, after] of [
    ["w:rubyBase", "", ""],
    ["w:rt", "(", ")"],
  ] as const) {
    const part = childOf(node, name);
    if (!part) continue;
    push(state, before);
    for (const child of elementsOf(part)) visit(child, state);
    push(state, after);
  }
}

function readMath(node: XmlNode, state: State): void {
  const text = writeMath(node);
  if (text === undefined) state.context.leftOut.add("equation");
  else state.pieces.push({ text });
}

/** The first form of a content that holds something; the others are the same for other programs. */
function readAlternatives(node: XmlNode, state: State): void {
  const { pieces, boxes, context } = state;
  for (const form of elementsOf(node)) {
    const before = pieces.length + boxes.length + context.leftOut.total();
    for (const child of elementsOf(form)) visit(child, state);
    if (pieces.length + boxes.length + context.leftOut.total() > before) return;
  }
}

function readGraphic(id: string | undefined, { boxes, context }: State): void {
  const text = context.graphics.get(id ?? "");
  if (text === undefined) context.leftOut.add("chart");
  else boxes.push({ text });
}

/** A picture has the words that describe it. */
function readDrawing(node: XmlNode, state: State): void {
  const before = state.context.leftOut.total();
  for (const child of elementsOf(node)) visit(child, state);
  if (state.context.leftOut.total() === before) return;
  const text = descriptionOf(findAll(node, "wp:docPr")[0]?.attributes);
  if (text !== undefined) state.boxes.push({ text });
}

function readObject(node: XmlNode, { context }: State): void {
  const program = findAll(node, "o:OLEObject")[0]?.attributes.ProgID ?? "";
  context.leftOut.add(/equation|mathtype/i.test(program) ? "equation" : "object");
}
