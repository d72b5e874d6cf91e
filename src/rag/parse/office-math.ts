import { childOf, elementsOf, textIn, type XmlNode } from "./office-xml.ts";

const MAX_LENGTH = 4_000; // characters; a longer equation is a picture of something else

/** Writes an equation of Office on one line: `(a+b)/2`, `10^6`, `√(x)`. Undefined if nothing of it can be written. */
export function writeMath(equation: XmlNode): string | undefined {
  const text = write(equation).replace(/\s+/g, " ").trim();
  return text === "" || text.length > MAX_LENGTH ? undefined : text;
}

const writers: Readonly<Record<string, (node: XmlNode) => string>> = {
  "m:t": (node) => plain(textIn(node)),
  "w:t": textIn,
  "m:f": (node) => {
    const [above, below] = [part(node, "m:num"), part(node, "m:den")];
    return property(node, "m:fPr", "m:type") === "noBar"
      ? `(${above}; ${below})`
      : `${grouped(above)}/${grouped(below)}`;
  },
  "m:sSup": (node) => `${grouped(part(node, "m:e"))}^${grouped(part(node, "m:sup"))}`,
  "m:sSub": (node) => `${grouped(part(node, "m:e"))}_${grouped(part(node, "m:sub"))}`,
  "m:sSubSup": (node) => `${grouped(part(node, "m:e"))}${bounds(node)}`,
  "m:sPre": (node) => `${bounds(node)}${grouped(part(node, "m:e"))}`,
  "m:rad": (node) => {
    const degree = part(node, "m:deg");
    return degree === "" ? `√(${part(node, "m:e")})` : `root(${degree}, ${part(node, "m:e")})`;
  },
  "m:nary": (node) => `${property(node, "m:naryPr", "m:chr") ?? "∫"}${bounds(node)} ${part(node, "m:e")}`,
  "m:d": (node) => {
    const mark = (name: string, otherwise: string) => property(node, "m:dPr", name) ?? otherwise;
    const inner = elementsOf(node).filter(({ name }) => name === "m:e");
    return `${mark("m:begChr", "(")}${inner.map(write).join(mark("m:sepChr", "|"))}${mark("m:endChr", ")")}`;
  },
  "m:func": (node) => {
    const inner = part(node, "m:e");
    return `${part(node, "m:fName")}${inner.startsWith("(") ? inner : `(${inner})`}`;
  },
  "m:acc": (node) => `${part(node, "m:e")}${property(node, "m:accPr", "m:chr") ?? "\u0302"}`.normalize("NFC"),
  "m:bar": (node) => `${part(node, "m:e")}\u0305`,
  "m:limLow": (node) => `${part(node, "m:e")}_${grouped(part(node, "m:lim"))}`,
  "m:limUpp": (node) => `${part(node, "m:e")}^${grouped(part(node, "m:lim"))}`,
  "m:m": (node) => {
    const rows = elementsOf(node).filter(({ name }) => name === "m:mr");
    return `[${rows.map((row) => elementsOf(row).map(write).join(", ")).join("; ")}]`;
  },
  "m:eqArr": (node) =>
    elementsOf(node)
      .filter(({ name }) => name === "m:e")
      .map(write)
      .join("; ")
      .replaceAll("&", ""),
  "m:phant": (node) => (property(node, "m:phantPr", "m:show") === "0" ? "" : part(node, "m:e")),
};

function write(node: XmlNode): string {
  const writer = writers[node.name];
  if (writer) return writer(node);
  return node.name.endsWith("Pr") || node.name === "w:del" ? "" : elementsOf(node).map(write).join("");
}

function part(node: XmlNode, name: string): string {
  const found = childOf(node, name);
  return found ? elementsOf(found).map(write).join("").trim() : "";
}

function property(node: XmlNode, properties: string, name: string): string | undefined {
  return childOf(childOf(node, properties), name)?.attributes["m:val"];
}

function bounds(node: XmlNode): string {
  const [below, above] = [part(node, "m:sub"), part(node, "m:sup")];
  return `${below === "" ? "" : `_${grouped(below)}`}${above === "" ? "" : `^${grouped(above)}`}`;
}

/** Brackets around what is more than one number, name, or bracketed term. */
function grouped(text: string): string {
  return /^([\p{L}\p{M}\p{N}.,′]+|\([^()]*\)|\[[^[\]]*\]|.?)$/u.test(text) ? text : `(${text})`;
}

/** Letters of the alphabets of mathematics are the letters that people search for. */
function plain(text: string): string {
  return text.replace(/[\u{1d400}-\u{1d7ff}]/gu, (letter) => letter.normalize("NFKC"));
}
