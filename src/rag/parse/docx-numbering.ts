import { formatNumber } from "./office-number-format.ts";
import { childOf, elementsOf, settingOf, switchOf, type XmlNode } from "./office-xml.ts";

const MAX_LEVELS = 9;
const MAX_LABEL = 100; // characters
const MAX_NUMBER = 1_000_000;

type Level = {
  start: number;
  format: string;
  text: string;
  /** A level from 1: only it and those above it start this one again; 0: none does. */
  restart: number | undefined;
  isDecimal: boolean;
  style: string | undefined;
};
type List = { levels: Map<number, Level>; counters: Counters; starts: Map<number, number> };
type Counters = (number | undefined)[];

/** What stands before an item of a list, as `2.1` or `b)`; a bullet is `-`. */
export type Label = { text: string; isBullet: boolean };

export type Numbering = ReturnType<typeof readNumbering>;

/** Reads the lists of a document; `listOfStyle` knows the list of a style of lists. It counts as its items are asked for. */
export function readNumbering(root: XmlNode | undefined, listOfStyle: (style: string) => string | undefined) {
  const templates = byId(root, "w:abstractNum", "w:abstractNumId");
  const instances = byId(root, "w:num", "w:numId");
  const counters = new Map<string, Counters>(); // lists of one template go on counting
  const lists = new Map<string, List | undefined>();

  const open = (id: string, isLinked = false): List | undefined => {
    const instance = instances.get(id);
    const templateId = settingOf(instance, "w:abstractNumId");
    const template = templates.get(templateId ?? "");
    if (!instance || !template || templateId === undefined) return undefined;
    const link = settingOf(template, "w:numStyleLink");
    const linked = link === undefined || isLinked ? undefined : open(listOfStyle(link) ?? "", true);
    const levels = new Map(linked?.levels ?? levelsOf(template));
    const starts = new Map<number, number>();
    for (const change of elementsOf(instance).filter(({ name }) => name === "w:lvlOverride")) {
      const at = numberOf(change.attributes["w:ilvl"]) ?? 0;
      const replaced = childOf(change, "w:lvl");
      if (replaced) levels.set(at, levelOf(replaced));
      const start = numberOf(settingOf(change, "w:startOverride"));
      if (start !== undefined) starts.set(at, start);
    }
    const shared = linked?.counters ?? counters.get(templateId) ?? [];
    counters.set(templateId, shared);
    return { levels, starts, counters: shared };
  };
  const listOf = (id: string) => {
    if (!lists.has(id)) lists.set(id, open(id));
    return lists.get(id);
  };

  return {
    /** Counts the next item of a list, and returns its label; undefined where there is none. */
    next(id: string, at: number): Label | undefined {
      const list = listOf(id);
      const level = list?.levels.get(at);
      if (!list || !level || at < 0 || at >= MAX_LEVELS) return undefined;
      count(list, at, level);
      if (level.format === "bullet") return { text: "-", isBullet: true };
      const text = level.text.replace(/%([1-9])/g, (_, digit: string) => {
        const part = list.levels.get(Number(digit) - 1);
        const value = list.counters[Number(digit) - 1] ?? part?.start ?? 1;
        return formatNumber(value, level.isDecimal ? "decimal" : (part?.format ?? "decimal"));
      });
      const label = text.slice(0, MAX_LABEL).trim();
      return label === "" ? undefined : { text: label, isBullet: false };
    },
    /** The level of a list that belongs to a style of paragraphs. */
    levelOfStyle(id: string, style: string | undefined): number | undefined {
      if (style === undefined) return undefined;
      return [...(listOf(id)?.levels ?? [])].find(([, level]) => level.style === style)?.[0];
    },
  };
}

function count(list: List, at: number, level: Level): void {
  const forced = list.starts.get(at);
  list.starts.delete(at); // holds for the first item only
  const present = list.counters[at];
  list.counters[at] = Math.min(forced ?? (present === undefined ? level.start : present + 1), MAX_NUMBER);
  for (let below = at + 1; below < MAX_LEVELS; below += 1) {
    const restart = list.levels.get(below)?.restart;
    if (restart === undefined || at < restart) list.counters[below] = undefined;
  }
}

function levelsOf(template: XmlNode): Map<number, Level> {
  const levels = elementsOf(template).filter(({ name }) => name === "w:lvl");
  return new Map(levels.map((level) => [numberOf(level.attributes["w:ilvl"]) ?? 0, levelOf(level)]));
}

function levelOf(level: XmlNode): Level {
  return {
    start: numberOf(settingOf(level, "w:start")) ?? 0,
    format: settingOf(level, "w:numFmt") ?? "decimal",
    text: settingOf(level, "w:lvlText") ?? "",
    restart: numberOf(settingOf(level, "w:lvlRestart")),
    isDecimal: switchOf(level, "w:isLgl") === true,
    style: settingOf(level, "w:pStyle"),
  };
}

function byId(root: XmlNode | undefined, name: string, attribute: string): Map<string, XmlNode> {
  const found = elementsOf(root).filter((node) => node.name === name);
  return new Map(found.map((node) => [node.attributes[attribute] ?? "", node]));
}

function numberOf(text: string | undefined): number | undefined {
  const value = Number.parseInt(text ?? "", 10);
  return Number.isNaN(value) ? undefined : Math.max(0, Math.min(value, MAX_NUMBER));
}
