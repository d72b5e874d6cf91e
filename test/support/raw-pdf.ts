import { deflateSync } from "node:zlib";

/** A page in PDF's own words: its drawing commands, and what it refers to. Fonts are F1 (Helvetica), F2 (its bold one). */
export type RawPage = {
  content: string;
  /** Further objects, each by the name that `%NAME%` stands for in any of them: dictionaries and streams in PDF's words. */
  objects?: Readonly<Record<string, string>>;
  /** What the page has besides its content, as `/Annots [%note%]`. */
  entries?: string;
  /** Further fonts and forms, as `/Font << /F3 %font% >>` has them: what stands between the brackets. */
  fonts?: string;
  forms?: string;
};

/** Writes a PDF by hand, so that it can hold what no library writes. `info`: its metadata, as `/Title (x)`. */
export function makeRawPdf(pages: readonly RawPage[], info = ""): Buffer {
  const objects: string[] = [];
  const add = (body: string) => objects.push(body); // answers its number
  const base = "/Type /Font /Subtype /Type1 /Encoding /WinAnsiEncoding /BaseFont";
  const plain = add(`<< ${base} /Helvetica >>`);
  const bold = add(`<< ${base} /Helvetica-Bold >>`);
  const treeAt = add("");
  const kids = pages.map(({ content, objects: named = {}, entries = "", fonts = "", forms = "" }) => {
    const numbers = new Map(Object.keys(named).map((name) => [name, add("")]));
    const resolve = (text: string) =>
      text.replace(/%(\w+)%/g, (whole, name: string) => refTo(numbers.get(name)) ?? whole);
    for (const [name, body] of Object.entries(named)) objects[(numbers.get(name) ?? 1) - 1] = resolve(body);
    const stream = add(streamOf(content));
    const resources = `/Font << /F1 ${refTo(plain)} /F2 ${refTo(bold)} ${resolve(fonts)} >> /XObject << ${resolve(forms)} >>`;
    const box = "/MediaBox [0 0 595 842]";
    return add(
      `<< /Type /Page /Parent ${refTo(treeAt)} ${box} /Resources << ${resources} >> /Contents ${refTo(stream)} ${resolve(entries)} >>`,
    );
  });
  objects[treeAt - 1] = `<< /Type /Pages /Count ${kids.length} /Kids [${kids.map(refTo).join(" ")}] >>`;
  const root = add(`<< /Type /Catalog /Pages ${refTo(treeAt)} >>`);
  const about = add(`<< ${info} >>`);
  return write(objects, `/Root ${refTo(root)} /Info ${refTo(about)}`);
}

const refTo = (number: number | undefined) => (number === undefined ? undefined : `${number} 0 R`);

/** A stream of drawing commands or other text, with what its dictionary has besides the length. */
export function streamOf(content: string, entries = ""): string {
  return `<< /Length ${Buffer.byteLength(content, "latin1")} ${entries} >>\nstream\n${content}\nendstream`;
}

/** A picture of so many pixels, all of one colour, which takes little of the file. It is drawn by `/NAME Do`. */
export function pictureStream(width: number, height: number, colours: 1 | 3): string {
  const data = deflateSync(Buffer.alloc(width * height * colours, 0xee)).toString("latin1");
  const space = colours === 1 ? "/DeviceGray" : "/DeviceRGB";
  const size = `/Width ${width} /Height ${height} /ColorSpace ${space} /BitsPerComponent 8`;
  return streamOf(data, `/Type /XObject /Subtype /Image ${size} /Filter /FlateDecode`);
}

/** Draws a text: `size` points high, at a place from the lower left corner, turned by degrees. */
export function draw(
  text: string,
  x: number,
  y: number,
  options: { size?: number; font?: string; turn?: number } = {},
): string {
  const { size = 11, font = "F1", turn = 0 } = options;
  const angle = (turn * Math.PI) / 180;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)].map((part) => part.toFixed(4));
  const string = text.startsWith("<") ? text : `(${text.replace(/[()\\]/g, "\\$&")})`;
  return `BT /${font} ${size} Tf ${cos} ${sin} ${-Number(sin)} ${cos} ${x} ${y} Tm ${string} Tj ET\n`;
}

function write(objects: readonly string[], trailer: string): Buffer {
  let file = "%PDF-1.7\n";
  const offsets = objects.map((body, index) => {
    const offset = file.length;
    file += `${index + 1} 0 obj\n${body}\nendobj\n`;
    return offset;
  });
  const table = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  const size = objects.length + 1;
  const end = `trailer\n<< /Size ${size} ${trailer} >>\nstartxref\n${file.length}\n%%EOF\n`;
  return Buffer.from(`${file}xref\n0 ${size}\n0000000000 65535 f \n${table}${end}`, "latin1");
}
