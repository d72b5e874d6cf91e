import type { DocxContext } from "./docx-context.ts";
import { formatNumber } from "./office-number-format.ts";
import { elementsOf, type XmlNode } from "./office-xml.ts";

/** The mark of a note where the text refers to it, as Markdown has it. Its text is due after the block. */
export function markOf(reference: XmlNode, kind: "f" | "e", context: DocxContext): string | undefined {
  const key = `${kind}${reference.attributes["w:id"] ?? ""}`;
  if (!context.notes.has(key)) return undefined;
  const known = context.marks.get(key);
  if (known !== undefined) return known;
  context.noted[kind] += 1;
  const mark = `[^${formatNumber(context.noted[kind], kind === "f" ? "decimal" : "lowerRoman")}]`;
  context.marks.set(key, mark);
  context.due.push(key);
  return mark;
}

/** The notes that are due, by their marks: each once, wherever the text refers to it. */
export function takeDue(context: DocxContext): { mark: string; note: XmlNode }[] {
  const due = context.due.splice(0);
  return due.flatMap((key) => {
    const [mark, note] = [context.marks.get(key), context.notes.get(key)];
    return mark === undefined || note === undefined ? [] : [{ mark, note }];
  });
}

/** Adds the notes of a part, without the lines that part them from the text. */
export function addNotes(root: XmlNode, kind: "f" | "e", notes: Map<string, XmlNode>): void {
  for (const note of elementsOf(root)) {
    const { "w:id": id, "w:type": type = "normal" } = note.attributes;
    if (id !== undefined && type === "normal") notes.set(`${kind}${id}`, note);
  }
}
