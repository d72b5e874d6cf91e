import { readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Command } from "commander";
import { type Measured, meetsMust, toTable } from "./goals.ts";

/** Every bench by the name that it is asked for with; loaded on demand, since each starts processes of its own. */
const benches: Record<string, () => Promise<Measured[]>> = {
  jobs: async () => (await import("./jobs.ts")).jobsBench(),
  chat: async () => (await import("./chat.ts")).chatBench(),
  streams: async () => (await import("./streams.ts")).streamsBench(),
  query: async () => (await import("./query.ts")).queryBench(),
  ingestion: async () => (await import("./ingestion.ts")).ingestionBench(),
  retrieval: async () => (await import("./retrieval.ts")).retrievalBench(dataOf("retrieval")),
  questions: async () => (await import("./questions.ts")).questionsBench(dataOf("questions")),
};

/** Where the texts of a bench are that are not part of the repository. */
const dataSettings = { retrieval: "RETRIEVAL_DATA", questions: "QUESTIONS_DATA" } as const;
const folderOf = (name: string) =>
  name === "retrieval" || name === "questions" ? process.env[dataSettings[name]] : undefined;

/** @throws Error when nothing says where they are. */
function dataOf(name: keyof typeof dataSettings): URL {
  const folder = folderOf(name);
  if (!folder) throw new Error(`${name}: set ${dataSettings[name]} to a folder of its texts (docs/performance.md)`);
  return pathToFileURL(`${resolve(folder)}/`);
}

/** Those of a run that names none. */
const usual = Object.keys(benches).filter((name) => !(name in dataSettings) || folderOf(name));

/** The rows of a table, by what they measure. */
const rowsOf = (table: string) =>
  new Map(
    table.split("\n").flatMap((row) => (row.startsWith("| ") ? [[row.split(" | ")[0] ?? "", row] as const] : [])),
  );

/** Puts the lines between the markers of docs/performance.md, each in the place of the one that measured the same. */
async function writeTable(lines: readonly Measured[]): Promise<void> {
  const path = new URL("../../../docs/performance.md", import.meta.url);
  const page = await readFile(path, "utf8");
  const [begin, end] = ["<!-- bench:begin -->", "<!-- bench:end -->"];
  const [head, rest] = page.split(begin);
  const [there, tail] = rest?.split(end) ?? [];
  if (head === undefined || there === undefined || tail === undefined) {
    throw new Error(`docs/performance.md lacks ${begin} or ${end}`);
  }
  const cores = `Measured by \`npm run bench\` on ${cpus().length} cores, Node ${process.versions.node}; each ratio within one run.`;
  const table = toTable(lines);
  const rows = new Map([...rowsOf(there), ...rowsOf(table)]);
  const [title, ...known] = rows.values();
  const rule = table.split("\n")[1];
  await writeFile(path, `${head}${begin}\n${[cores, "", title, rule, ...known].join("\n")}\n${end}${tail}`);
}

const program = new Command("bench")
  .argument("[names...]", `which of ${Object.keys(benches).join(", ")}; all when none is named`)
  .option("--write", "put the lines into the table of docs/performance.md")
  .action(async (names: string[], { write = false }: { write?: boolean }) => {
    const lines: Measured[] = [];
    for (const name of names.length > 0 ? names : usual) {
      const bench = benches[name];
      if (!bench) throw new Error(`There is no bench ${name}; there are ${Object.keys(benches).join(", ")}.`);
      console.log(`\n${name} …`);
      const measured = await bench();
      console.log(toTable(measured));
      lines.push(...measured);
    }
    if (write) await writeTable(lines);
    const missed = lines.filter((line) => !meetsMust(line));
    if (missed.length > 0) {
      console.error(`\n${missed.length} of ${lines.length} lines miss their "must".`);
      process.exitCode = 1;
    }
  });

await program.parseAsync();
