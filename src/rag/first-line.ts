/** A title for a text that came without one: its first line with anything on it, without Markdown's heading marks. */
export function firstLineOf(text: string): string {
  const lines = text.slice(0, 10_000).split(/[\n\r\u2028\u2029]/);
  const line = lines.find((each) => each.trim() !== "")?.trim() ?? "";
  return (
    line
      .replace(/^#{1,6}\s+/, "")
      .trim()
      .slice(0, 120) || "Untitled"
  );
}
