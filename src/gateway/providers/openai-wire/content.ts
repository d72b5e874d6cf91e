type Said = { text: string; reasoning: string };

/** Parts of one content that are read, and levels of them. */
const MAX_PARTS = 10_000;
const MAX_DEPTH = 3;

/** What a model said: a text, or, of Mistral and others, a list of parts, some of which are what it thought. */
export function readContent(content: unknown, depth = 0): Said {
  if (typeof content === "string") return { text: content, reasoning: "" };
  if (typeof content !== "object" || content === null || depth > MAX_DEPTH) return { text: "", reasoning: "" };
  if (!Array.isArray(content)) return readPart(content, depth);
  const said = content.slice(0, MAX_PARTS).map((part) => readContent(part, depth + 1));
  return { text: said.map(({ text }) => text).join(""), reasoning: said.map(({ reasoning }) => reasoning).join("") };
}

function readPart(part: object, depth: number): Said {
  const { type, text, thinking, reasoning, refusal, content } = Object(part);
  if (type === "thinking" || type === "reasoning") {
    const thought = readContent(thinking ?? reasoning ?? text ?? content, depth + 1);
    return { text: "", reasoning: thought.text + thought.reasoning };
  }
  return readContent(text ?? refusal ?? content, depth + 1);
}
