import { type Attack, flood, ingestFile, toForm } from "../attack.ts";

const MB = 1_000_000;
const bytesOf = (sign: string, count: number) => new Uint8Array(Buffer.alloc(count, sign));

/** One document after the other, in a few lanes, until the attack is over. */
function documents(
  name: string,
  about: string,
  file: { make(): string | Uint8Array<ArrayBuffer>; type: string; file: string },
): Attack {
  return {
    name,
    about,
    async run({ member, signal }) {
      const form = await toForm({ bytes: file.make(), type: file.type, name: file.file });
      await flood(signal, 3, () => ingestFile(member, form));
    },
  };
}

export const documentAttacks: readonly Attack[] = [
  documents("one-letter", "files of 45 MB that hold one letter", {
    make: () => bytesOf("a", 45 * MB),
    type: "text/plain",
    file: "one.txt",
  }),
  documents("letters-and-blanks", "files of 20 MB of one-letter words", {
    make: () => bytesOf("a ", 20 * MB),
    type: "text/plain",
    file: "words.txt",
  }),
  documents("deep-html", "HTML that nests a million times", {
    make: () => "<div>".repeat(1_000_000),
    type: "text/html",
    file: "deep.html",
  }),
  documents("wide-html", "HTML with a table of a million cells", {
    make: () => `<table><tr>${"<td>1</td>".repeat(1_000_000)}</tr></table>`,
    type: "text/html",
    file: "wide.html",
  }),
  documents("markdown-brackets", "Markdown of ten million brackets", {
    make: () => bytesOf("[", 10 * MB),
    type: "text/markdown",
    file: "brackets.md",
  }),
];
