import { seededRandom } from "../measure.ts";

const words = ["queue", "worker", "the", "of", "a", "retrieval", "document", "is", "and", "index", "lease", "to", "in"];

/** English-like prose in paragraphs, of at least so many characters; another one for each number. */
export function makeText(number: number, characters: number): string {
  const random = seededRandom(number + 1);
  const word = () =>
    words[Math.floor(random() * words.length * 2)] ?? `term${Math.floor(random() * 20_000).toString(36)}`;
  const sentence = () => `${Array.from({ length: 8 + Math.floor(random() * 14) }, word).join(" ")}. `;
  let text = "";
  while (text.length < characters) text += `${Array.from({ length: 5 }, sentence).join("")}\n\n`;
  return text;
}
