import { toSentences } from "./offline-rank.ts";

/** The head of a passage that is to be cited by its mark: `【3】 pump.txt`. */
const head = /^【\d+】.*$/m;
const passage = /^(【\d+】).*\n([\s\S]*?)(?=^【\d+】|(?![\s\S]))/gm;

/** Whether a sentence is the head of a passage, and says nothing. */
export const isHead = (sentence: string): boolean => head.test(sentence);

/** The marks of the passages that sentences stand in. */
export function marksOf(texts: readonly string[]): Map<string, string> {
  const marks = new Map<string, string>();
  for (const text of texts) {
    if (!head.test(text)) continue;
    for (const [, mark = "", content = ""] of text.matchAll(passage))
      for (const sentence of toSentences(content)) if (!marks.has(sentence)) marks.set(sentence, mark);
  }
  return marks;
}
