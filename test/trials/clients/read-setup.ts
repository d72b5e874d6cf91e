import { readFile } from "node:fs/promises";

/** How a client is set up, as a section of the documentation has it. */
export type Setup = {
  /** By their paths in the home folder. */
  files: Record<string, string>;
  /** What is typed into a shell. */
  commands: string;
};

const page = new URL("../../../docs/clients.md", import.meta.url);
/** Where the documentation has Switchyard. */
const DOCUMENTED_URL = "http://127.0.0.1:3000";
const DOCUMENTED_MODEL = /gpt-5\.6-terra|claude-sonnet-5-5/g;

/** The setup of a section of `docs/clients.md`, but for the address and the model. */
export async function readSetup(heading: string, { url, model }: { url: string; model: string }): Promise<Setup> {
  const [, section] = (await readFile(page, "utf8")).split(`\n### ${heading}\n`);
  if (section === undefined) throw new Error(`docs/clients.md has no section "${heading}".`);
  const setup: Setup = { files: {}, commands: "" };
  for (const [, language, block = ""] of untilNextHeading(section).matchAll(/```(\w+)\n(.*?)```/gs)) {
    const text = block.replaceAll(DOCUMENTED_URL, url).replaceAll(DOCUMENTED_MODEL, model);
    const path = /^(?:#|\/\/) ~\/(\S+)\n/.exec(text)?.[1];
    if (path !== undefined) setup.files[path] = text;
    else if (language === "sh") setup.commands += text;
  }
  if (setup.commands === "") throw new Error(`docs/clients.md has no command for "${heading}".`);
  return setup;
}

const untilNextHeading = (text: string) => text.split(/^##/m)[0] ?? "";
