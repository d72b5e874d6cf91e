import { collectSections, firstLineOf, type ParsedDocument } from "./section.ts";

const FRONT_MATTER = /^\uFEFF?---[ \t]*\n(?=\S)([\s\S]*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)/;
const MAX_MATTER = 65_536; // characters
/** A line of a YAML mapping at its outer level. */
const MATTER_KEY = /^(?:"[^"]{1,100}"|'[^']{1,100}'|[\p{L}\p{N}_$@][\p{L}\p{N}_$@./ -]{0,60})[ \t]*:(?:[ \t]|$)/u;
/** What may stand between these lines: blank lines, comments, and what belongs to the key above. */
const MATTER_REST = /^(?:[ \t]|#|- |-$|[\]}]|$)/;
const ATX_HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const SETEXT_UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;
const MAX_HEADING_LINE = 1_000; // a longer line is never a heading
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;

/**
 * Cuts Markdown at its headings (ATX and setext, not those inside code fences). The source text stays as it is: code,
 * tables and links matter to readers and models. Front matter is removed; its `title` becomes the document's title. Any other
 * `---` is a rule, and what stands between two of them is text.
 * The lines are scanned for headings only: building a syntax tree costs ten times the rest of an ingestion.
 */
export function parseMarkdown(source: string): ParsedDocument {
  const text = source.replace(/\r\n?/g, "\n");
  const matter = frontMatterOf(text);
  const found = collectSections();
  let lines: string[] = [];
  for (const line of linesWithHeadings(text.slice(matter?.length ?? 0))) {
    if (line.heading) {
      found.add(lines.join("\n"));
      found.enter(line.heading.level, line.heading.text);
      lines = [];
    }
    lines.push(line.source);
  }
  found.add(lines.join("\n"));
  const { sections, firstHeading } = found;
  const title = matterTitle(matter?.yaml) ?? firstHeading ?? firstLineOf(sections[0]?.text ?? "");
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

/**
 * The front matter of a text, and the length of what it takes. It has the form of a YAML mapping: by its lines, since many a
 * mapping is no valid YAML (`title: Pumps: a guide`).
 */
function frontMatterOf(text: string): { yaml: string; length: number } | undefined {
  const [all, yaml] = FRONT_MATTER.exec(text.slice(0, MAX_MATTER)) ?? [];
  if (all === undefined || yaml === undefined) return undefined;
  const lines = yaml.split("\n");
  const first = lines.find((line) => line.trim() !== "" && !line.startsWith("#"));
  const isMapping = lines.every((line) => MATTER_KEY.test(line) || MATTER_REST.test(line));
  return isMapping && MATTER_KEY.test(first ?? "") ? { yaml, length: all.length } : undefined;
}

function matterTitle(matter: string | undefined): string | undefined {
  const value = matter?.match(/^title:[ \t]*(?:[>|][-+]?[ \t]*\n[ \t]+)?(.+)$/m)?.[1]?.trim();
  return value?.replace(/^(["'])(.*)\1$/, "$2");
}
