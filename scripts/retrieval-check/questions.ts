import { readFile } from "node:fs/promises";
import { z } from "zod";

const text = z.string().min(1);
const place = {
  documentId: text.optional(),
  title: text.optional(),
  contains: z.union([text, z.array(text).min(1)]).optional(),
};
const line = z.object({
  question: text,
  ...place,
  also: z.array(z.object(place)).optional(),
  answer: text.optional(),
  history: z.array(z.object({ role: z.enum(["user", "assistant"]), content: z.string() })).optional(),
});
type Place = { documentId?: string | undefined; title?: string | undefined; contains?: string | string[] | undefined };
/** A question with the places that answer it; one without places is answered by no document. */
export type Question = z.output<typeof line> & { places: Place[] };
/** A result of a query, as far as it is looked at. */
export type Found = { documentId: string; title: string; content: string };

/** The questions of a file of JSONL. @throws Error that names the first line which is none. */
export async function readQuestions(file: string): Promise<Question[]> {
  const lines = (await readFile(file, "utf8")).split("\n");
  return lines.flatMap((json, at) => {
    if (json.trim() === "") return [];
    const read = line.safeParse(parse(json));
    if (!read.success) throw new Error(`${file}, line ${at + 1}: ${z.prettifyError(read.error)}`);
    const { also = [], ...question } = read.data;
    const places = [question, ...also].filter(
      ({ documentId, title }) => documentId !== undefined || title !== undefined,
    );
    return [{ ...question, places }];
  });
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

const plain = (value: string) => value.normalize("NFKC").replace(/\s+/g, " ").toLowerCase();

/** Whether a result is one of the places that answer a question. */
export function answers({ documentId, title, content }: Found, { places }: Pick<Question, "places">): boolean {
  return places.some((wanted) => {
    const isDocument = wanted.documentId === undefined ? wanted.title === title : wanted.documentId === documentId;
    const held = wanted.contains === undefined ? undefined : [wanted.contains].flat();
    return isDocument && (held?.some((one) => plain(content).includes(plain(one))) ?? true);
  });
}
