import { makeZip } from "./documents.ts";

const main = "http://schemas.openxmlformats.org";
const spaces = [
  `xmlns:w="${main}/wordprocessingml/2006/main"`,
  `xmlns:r="${main}/officeDocument/2006/relationships"`,
  `xmlns:m="${main}/officeDocument/2006/math"`,
  `xmlns:a="${main}/drawingml/2006/main"`,
  `xmlns:wp="${main}/drawingml/2006/wordprocessingDrawing"`,
  `xmlns:pic="${main}/drawingml/2006/picture"`,
  `xmlns:c="${main}/drawingml/2006/chart"`,
  `xmlns:dgm="${main}/drawingml/2006/diagram"`,
  `xmlns:p="${main}/presentationml/2006/main"`,
  `xmlns:xdr="${main}/drawingml/2006/spreadsheetDrawing"`,
  `xmlns:mc="${main}/markup-compatibility/2006"`,
  'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"',
  'xmlns:v="urn:schemas-microsoft-com:vml"',
  'xmlns:o="urn:schemas-microsoft-com:office:office"',
].join(" ");

const officeDocument = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const xml = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>';

type Parts = Readonly<Record<string, string>>;
/** A part that another one refers to, by an id that is `type` and `target` in one, as `slide:slides/1.xml`. */
type Links = Readonly<Record<string, readonly string[]>>;

/** An archive of parts of Office. Of a link such as `styles:styles.xml` the id is the same text. */
export function makeOffice(parts: Parts, links: Links, packing?: number): Buffer {
  const entries = Object.entries(parts).map(([name, content]) => ({ name, content: Buffer.from(xml + content) }));
  const relations = Object.entries(links).map(([part, targets]) => {
    const at = part.lastIndexOf("/") + 1;
    const items = targets.map((link) => {
      const [type = "", target = ""] = link.split(":");
      return `<Relationship Id="${link}" Type="${officeDocument}/${type}" Target="${target}"/>`;
    });
    const content = `${xml}<Relationships xmlns="${main}/package/2006/relationships">${items.join("")}</Relationships>`;
    return { name: `${part.slice(0, at)}_rels/${part.slice(at)}.rels`, content: Buffer.from(content) };
  });
  const types = {
    name: "[Content_Types].xml",
    content: Buffer.from(`${xml}<Types xmlns="${main}/package/2006/content-types"/>`),
  };
  return makeZip([types, ...relations, ...entries], packing);
}

type Word = {
  styles?: string;
  numbering?: string;
  footnotes?: string;
  endnotes?: string;
  title?: string;
  header?: string;
};

/** A DOCX of WordprocessingML; each of the other parts is its inner XML. */
export function makeWord(body: string, { title, header, ...others }: Word = {}): Buffer {
  const parts = Object.entries(others).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const inner = parts.map(([name, content]) => [`word/${name}.xml`, `<w:${name} ${spaces}>${content}</w:${name}>`]);
  return makeOffice(
    {
      "word/document.xml": `<w:document ${spaces}><w:body>${body}</w:body></w:document>`,
      ...Object.fromEntries(inner),
      ...(header === undefined ? {} : { "word/header1.xml": `<w:hdr ${spaces}>${header}</w:hdr>` }),
      ...(title === undefined ? {} : { "docProps/core.xml": coreOf(title) }),
    },
    {
      "": [`officeDocument:word/document.xml`, ...(title === undefined ? [] : ["core-properties:docProps/core.xml"])],
      "word/document.xml": [
        ...parts.map(([name]) => `${name}:${name}.xml`),
        ...(header === undefined ? [] : ["header:header1.xml"]),
      ],
    },
  );
}

function coreOf(title: string): string {
  return `<c:coreProperties xmlns:c="${main}/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>${title}</dc:title></c:coreProperties>`;
}

/** A paragraph of Word; `properties` are those of the paragraph, `look` those of its only run. */
export function paragraph(text: string, properties = "", look = ""): string {
  return `<w:p><w:pPr>${properties}</w:pPr>${run(text, look)}</w:p>`;
}

/** A run of Word. */
export function run(text: string, look = ""): string {
  return `<w:r><w:rPr>${look}</w:rPr><w:t xml:space="preserve">${text}</w:t></w:r>`;
}

/** An item of a list of Word. */
export function item(text: string, list: number, level = 0): string {
  return paragraph(text, `<w:numPr><w:ilvl w:val="${level}"/><w:numId w:val="${list}"/></w:numPr>`);
}

/** A level of a list of Word. */
export function level(at: number, text: string, { format = "decimal", start = 1, more = "" } = {}): string {
  return `<w:lvl w:ilvl="${at}"><w:start w:val="${start}"/><w:numFmt w:val="${format}"/>${more}<w:lvlText w:val="${text}"/></w:lvl>`;
}

/** The lists of a document, each with a template of its own, or that of another one and changes. */
export function lists(templates: readonly string[], more = ""): string {
  const all = templates.map((levels, at) => `<w:abstractNum w:abstractNumId="${at}">${levels}</w:abstractNum>`);
  const instances = templates.map((_, at) => `<w:num w:numId="${at + 1}"><w:abstractNumId w:val="${at}"/></w:num>`);
  return [...all, ...instances, more].join("");
}

/** A style of paragraphs. */
export function style(id: string, { name = id, basedOn = "", properties = "", look = "" }): string {
  const base = basedOn === "" ? "" : `<w:basedOn w:val="${basedOn}"/>`;
  return `<w:style w:type="paragraph" w:styleId="${id}"><w:name w:val="${name}"/>${base}<w:pPr>${properties}</w:pPr><w:rPr>${look}</w:rPr></w:style>`;
}

/** A table of Word; a cell that begins with `<` is what it holds, any other its text. */
export function table(rows: readonly (readonly string[])[]): string {
  const cell = (content: string) => `<w:tc>${content.startsWith("<") ? content : paragraph(content)}</w:tc>`;
  return `<w:tbl>${rows.map((cells) => `<w:tr>${cells.map(cell).join("")}</w:tr>`).join("")}</w:tbl>`;
}

export type SheetSource = { name: string; rows: string; state?: string; more?: string; before?: string };

type Book = { styles?: string; strings?: string; properties?: string; packing?: number | undefined };

/** An XLSX of rows of SpreadsheetML. */
export function makeWorkbook(
  sheets: readonly SheetSource[],
  { styles = "", strings = "", properties = "", packing }: Book = {},
): Buffer {
  const space = `xmlns="${main}/spreadsheetml/2006/main" xmlns:r="${officeDocument}"`;
  const ids = sheets.map((_, at) => `worksheet:worksheets/sheet${at + 1}.xml`);
  const list = sheets.map(
    ({ name, state = "visible" }, at) =>
      `<sheet name="${name}" sheetId="${at + 1}" state="${state}" r:id="${ids[at]}"/>`,
  );
  const parts = sheets.map(({ rows, more = "", before = "" }, at) => [
    `xl/worksheets/sheet${at + 1}.xml`,
    `<worksheet ${space}>${before}<sheetData>${rows}</sheetData>${more}</worksheet>`,
  ]);
  return makeOffice(
    {
      "xl/workbook.xml": `<workbook ${space}>${properties}<sheets>${list.join("")}</sheets></workbook>`,
      "xl/styles.xml": `<styleSheet ${space}>${styles}</styleSheet>`,
      "xl/sharedStrings.xml": `<sst ${space}>${strings}</sst>`,
      ...Object.fromEntries(parts),
    },
    {
      "": ["officeDocument:xl/workbook.xml"],
      "xl/workbook.xml": [...ids, "styles:styles.xml", "sharedStrings:sharedStrings.xml"],
    },
    packing,
  );
}

/** A row of a sheet: texts as they are, numbers as numbers; `[number, style]` has a format. */
export function sheetRow(
  cells: readonly (string | number | null | readonly [number, number])[],
  attributes = "",
): string {
  const written = cells.map((cell) => {
    if (cell === null) return "<c/>";
    if (typeof cell === "string") return `<c t="inlineStr"><is><t>${cell}</t></is></c>`;
    const [value, format] = typeof cell === "number" ? [cell, 0] : cell;
    return `<c s="${format}"><v>${value}</v></c>`;
  });
  return `<row ${attributes}>${written.join("")}</row>`;
}

/** A slide: its shapes, the text of its notes, further attributes. */
export type SlideSource = { shapes: string; notes?: string; attributes?: string; links?: readonly string[] };

type Deck = { order?: readonly number[]; parts?: Parts; packing?: number | undefined };

/** A PPTX; its slides are shown in the order of `order`. */
export function makeDeck(
  slides: readonly SlideSource[],
  { order = slides.map((_, at) => at), parts = {}, packing }: Deck = {},
): Buffer {
  const id = (at: number) => `slide:slides/slide${at + 1}.xml`;
  const tree = (shapes: string) => `<p:cSld><p:spTree>${shapes}</p:spTree></p:cSld>`;
  const made = slides.flatMap(({ shapes, notes, attributes = "" }, at) => [
    [`ppt/slides/slide${at + 1}.xml`, `<p:sld ${spaces} ${attributes}>${tree(shapes)}</p:sld>`],
    ...(notes === undefined
      ? []
      : [[`ppt/notesSlides/notes${at + 1}.xml`, `<p:notes ${spaces}>${tree(shape(notes, "body"))}</p:notes>`]]),
  ]);
  const links = slides.map(({ notes, links: own = [] }, at) => [
    `ppt/slides/slide${at + 1}.xml`,
    [...own, ...(notes === undefined ? [] : [`notesSlide:../notesSlides/notes${at + 1}.xml`])],
  ]);
  const list = order.map((at) => `<p:sldId id="${256 + at}" r:id="${id(at)}"/>`).join("");
  return makeOffice(
    {
      "ppt/presentation.xml": `<p:presentation ${spaces}><p:sldIdLst>${list}</p:sldIdLst></p:presentation>`,
      ...Object.fromEntries(made),
      ...Object.fromEntries(
        Object.entries(parts).map(([name, content]) => [name, content.replace(" NS", ` ${spaces}`)]),
      ),
    },
    {
      "": ["officeDocument:ppt/presentation.xml"],
      "ppt/presentation.xml": slides.map((_, at) => id(at)),
      ...Object.fromEntries(links),
    },
    packing,
  );
}

/** A shape of a slide, a paragraph for each line of its text. */
export function shape(text: string, place?: string, properties = ""): string {
  const lines = text.split("\n").map((line) => `<a:p><a:pPr>${properties}</a:pPr><a:r><a:t>${line}</a:t></a:r></a:p>`);
  const mark = place === undefined ? "" : `<p:ph type="${place}"/>`;
  return `<p:sp><p:nvSpPr><p:cNvPr id="1" name="x"/><p:nvPr>${mark}</p:nvPr></p:nvSpPr><p:txBody>${lines.join("")}</p:txBody></p:sp>`;
}
