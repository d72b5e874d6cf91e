import type { Script } from "./office-inline.ts";
import { childOf, elementsOf, settingOf, switchOf, type XmlNode } from "./office-xml.ts";

const MAX_CHAIN = 20; // of styles that are based on each other

/** How the text of a run looks, as far as it changes what is read. */
export type Look = {
  isHidden?: boolean | undefined;
  isStruck?: boolean | undefined;
  script?: Script | "plain" | undefined;
};
/** Where a paragraph belongs. */
export type ParagraphStyle = {
  /** Of a heading, from 1. */
  level?: number;
  isTitle: boolean;
  numbering: { id?: string | undefined; level?: number | undefined };
  look: Look;
};

export type Styles = ReturnType<typeof readStyles>;

/** Reads the styles of a document, each with what it has from those that it is based on. */
export function readStyles(root: XmlNode | undefined) {
  const all = new Map<string, XmlNode>();
  let standard: string | undefined; // of paragraphs that name none
  for (const style of elementsOf(root)) {
    const { "w:styleId": id, "w:type": type, "w:default": isDefault } = style.attributes;
    if (style.name !== "w:style" || id === undefined) continue;
    all.set(id, style);
    if (type === "paragraph" && (isDefault === "1" || isDefault === "true")) standard ??= id;
  }
  const defaults = lookOf(childOf(childOf(childOf(root, "w:docDefaults"), "w:rPrDefault"), "w:rPr"));
  const paragraphs = new Map<string, ParagraphStyle>();
  const looks = new Map<string, Look>();

  const chainOf = (id: string | undefined): XmlNode[] => {
    const chain: XmlNode[] = [];
    for (let style = all.get(id ?? ""); style && chain.length < MAX_CHAIN; ) {
      chain.push(style);
      style = all.get(settingOf(style, "w:basedOn") ?? "");
    }
    return chain;
  };
  const lookOfChain = (chain: readonly XmlNode[]) => merged(chain.map((style) => lookOf(childOf(style, "w:rPr"))));

  return {
    /** The style of a paragraph by its id; a style that is not there is known by its id alone. */
    paragraph(id = standard): ParagraphStyle {
      const known = paragraphs.get(id ?? "");
      if (known) return known;
      const chain = chainOf(id);
      const names = chain.length > 0 ? chain.map((style) => settingOf(style, "w:name") ?? "") : [id ?? ""];
      const style = {
        ...levelOf(chain, names),
        isTitle: names.some((name) => /^title$/i.test(name)),
        numbering: numberingOf(chain),
        look: merged([lookOfChain(chain), defaults]),
      };
      paragraphs.set(id ?? "", style);
      return style;
    },
    /** How the text of a style of characters looks. */
    character(id: string | undefined): Look {
      if (id === undefined) return {};
      const known = looks.get(id) ?? lookOfChain(chainOf(id));
      looks.set(id, known);
      return known;
    },
    /** The list that a style of lists stands for. */
    listOf: (id: string) => numberingOf(chainOf(id)).id,
  };
}

/** The nearest of several that says something. */
export function merged(looks: readonly Look[]): Look {
  const first = <K extends keyof Look>(name: K) => looks.find((look) => look[name] !== undefined)?.[name];
  return { isHidden: first("isHidden"), isStruck: first("isStruck"), script: first("script") };
}

/** What the properties of a run say of its look. */
export function lookOf(properties: XmlNode | undefined): Look {
  if (!properties) return {};
  const place = settingOf(properties, "w:vertAlign");
  const single = switchOf(properties, "w:strike");
  const double = switchOf(properties, "w:dstrike");
  return {
    isHidden: switchOf(properties, "w:vanish"),
    isStruck: single === undefined && double === undefined ? undefined : single === true || double === true,
    script: place === undefined ? undefined : place === "superscript" ? "^" : place === "subscript" ? "_" : "plain",
  };
}

/** The level of an outline, from 1; 0 says that there is none. */
export function outlineLevel(properties: XmlNode | undefined): number | undefined {
  const value = Number.parseInt(settingOf(properties, "w:outlineLvl") ?? "", 10);
  if (Number.isNaN(value)) return undefined;
  return value >= 0 && value < 9 ? value + 1 : 0;
}

/** The nearest level that a style of the chain has: by its outline, or by the name of a style of Word. */
function levelOf(chain: readonly XmlNode[], names: readonly string[]): { level?: number } {
  for (const [at, name] of names.entries()) {
    const outline = outlineLevel(childOf(chain[at], "w:pPr"));
    const named = /^heading\s?([1-9])$/i.exec(name)?.[1];
    const level = outline ?? (named === undefined ? undefined : Number(named));
    if (level !== undefined) return level === 0 ? {} : { level };
  }
  return {};
}

function numberingOf(chain: readonly XmlNode[]): ParagraphStyle["numbering"] {
  const all = chain.map((style) => childOf(childOf(style, "w:pPr"), "w:numPr"));
  const first = (name: string) => all.map((one) => settingOf(one, name)).find((value) => value !== undefined);
  const level = first("w:ilvl");
  return { id: first("w:numId"), level: level === undefined ? undefined : Number.parseInt(level, 10) };
}
