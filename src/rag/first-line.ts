/** A title for a text that came without one: its first line with anything on it, without Markdown's heading marks. */
export function firstLineOf(text: string): string {
  const line = /^[^\S\n]*(\S.*)$/m.exec(text.slice(0, 10_000))?.[1] ?? "";
  return (
    line
      .replace(/^#{1,6}\s+/, "")
      .trim()
      .slice(0, 120) || "Untitled"
  );
}
