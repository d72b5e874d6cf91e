import { collectSections, firstLineOf, type ParsedDocument } from "./section.ts";

const FRONT_MATTER = /^---[ \t]*\n([\s\S]*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)/;
const ATX_HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const SETEXT_UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;
const MAX_HEADING_LINE = 1_000; // a longer line is never a heading
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;

/**
 * Cuts Markdown at its headings (ATX and setext, not those inside code fences). The source text stays as it is: code,
 * tables and links matter to readers and models. Front matter is removed; its `title` becomes the document's title.
 * The lines are scanned for headings only: building a syntax tree costs ten times the rest of an ingestion.
 */
export function parseMarkdown(source: string): ParsedDocument {
  const text = source.replace(/\r\n?/g, "\n");
  const matter = FRONT_MATTER.exec(text);
  const found = collectSections();
  let lines: string[] = [];
  for (const line of linesWithHeadings(matter ? text.slice(matter[0].length) : text)) {
    if (line.heading) {
      found.add(lines.join("\n"));
      found.enter(line.heading.level, line.heading.text);
      lines = [];
    }
    lines.push(line.source);
  }
  found.add(lines.join("\n"));
  const { sections, firstHeading } = found;
  const title = matterTitle(matter?.[1]) ?? firstHeading ?? firstLineOf(sections[0]?.text ?? "");
  return { type: "markdown", sections, ...(title ? { title } : {}) };
}

type Line = { source: string; heading?: { level: number; text: string } };

function* linesWithHeadings(text: string): Generator<Line> {
  let fence: string | undefined;
  let paragraph: string | undefined; // the previous line, if it may be the text of a setext heading
  for (const source of text.split("\n")) {
    const mark = FENCE.exec(source);
    if (fence !== undefined) {
      if (mark?.[1]?.startsWith(fence) && mark[2]?.trim() === "") fence = undefined;
      yield { source };
      continue;
    }
    if (mark) fence = mark[1];
    const atx = source.length > MAX_HEADING_LINE ? null : ATX_HEADING.exec(source);
    const underline = paragraph === undefined ? null : SETEXT_UNDERLINE.exec(source);
    const held = paragraph;
    paragraph = undefined;
    if (held !== undefined && underline) {
      const level = underline[1]?.startsWith("=") ? 1 : 2;
      yield { source: `${held}\n${source}`, heading: { level, text: held.trim() } };
      continue;
    }
    if (held !== undefined) yield { source: held };
    if (atx) yield { source, heading: { level: atx[1]?.length ?? 1, text: plain(atx[2] ?? "") } };
    else if (mark || !isParagraphLine(source)) yield { source };
    else paragraph = source;
  }
  if (paragraph !== undefined) yield { source: paragraph };
}

/** A line that a setext underline would make a heading: not empty, no list, quote, table or indented code. */
function isParagraphLine(line: string): boolean {
  return (
    line.length <= MAX_HEADING_LINE && line.trim() !== "" && !/^(?: {4}|\t| {0,3}(?:[-*+>|]|\d+[.)]\s))/.test(line)
  );
}

/** A heading's text without emphasis, code marks and link targets. */
function plain(text: string): string {
  return text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/[*_`]{1,3}/g, "")
    .trim();
}

function matterTitle(matter: string | undefined): string | undefined {
  const value = matter?.match(/^title:[ \t]*(.+)$/m)?.[1]?.trim();
  return value?.replace(/^(["'])(.*)\1$/, "$2");
}
