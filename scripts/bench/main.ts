import { readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { Command } from "commander";
import { type Measured, meetsMust, toTable } from "./goals.ts";

type Options = { write?: boolean; chunks?: number };
type Bench = (options: Options) => Promise<Measured[]>;

/** Every bench by the name that it is asked for with; loaded on demand, since each starts processes of its own. */
const benches: Record<string, Bench> = {
  jobs: async () => (await import("./jobs.ts")).jobsBench(),
  chat: async () => (await import("./chat.ts")).chatBench(),
  gateway: async () => (await import("./gateway.ts")).gatewayBench(),
  surfaces: async () => (await import("./surfaces.ts")).surfacesBench(),
  streams: async () => (await import("./streams.ts")).streamsBench(),
  query: async () => (await import("./query.ts")).queryBench(),
  "query-million": async (options) => (await import("./query-million.ts")).queryMillionBench(options),
  ingestion: async () => (await import("./ingestion.ts")).ingestionBench(),
  memory: async () => (await import("./memory.ts")).memoryBench(),
  flags: async () => (await import("./flags.ts")).flagsBench(),
  idle: async () => (await import("./idle.ts")).idleBench(),
  retrieval: async () => (await import("./retrieval.ts")).retrievalBench(),
  agents: async () => (await import("./agents.ts")).agentsBench(),
  workflows: async () => (await import("./workflows.ts")).workflowsBench(),
  soak: async () => (await import("./soak.ts")).soakBench(),
  fairness: async () => (await import("./fairness.ts")).fairnessBench(),
  scaling: async () => (await import("./scaling.ts")).scalingBench(),
  guards: async () => (await import("./guards.ts")).guardsBench(),
};

/** Takes long, or much memory: it runs when it is named alone. */
const onRequest: ReadonlySet<string> = new Set(["query-million"]);
const usual = Object.keys(benches).filter((name) => !onRequest.has(name));

/** The rows of a table, by what they measure. */
const rowsOf = (table: string) =>
  new Map(
    table.split("\n").flatMap((row) => (row.startsWith("| ") ? [[row.split(" | ")[0] ?? "", row] as const] : [])),
  );

/** Puts the lines between the markers of docs/performance.md: all of them, or in the place of those that measure the same. */
async function writeTable(lines: readonly Measured[], isAll: boolean): Promise<void> {
  const path = new URL("../../docs/performance.md", import.meta.url);
  const page = await readFile(path, "utf8");
  const [begin, end] = ["<!-- bench:begin -->", "<!-- bench:end -->"];
  const [head, rest] = page.split(begin);
  const [there, tail] = rest?.split(end) ?? [];
  if (head === undefined || there === undefined || tail === undefined) {
    throw new Error(`docs/performance.md lacks ${begin} or ${end}`);
  }
  const cores = `Measured by \`npm run bench\` on ${cpus().length} cores, Node ${process.versions.node}; each ratio within one run.`;
  const table = toTable(lines);
  const rows = new Map([...(isAll ? [] : rowsOf(there)), ...rowsOf(table)]);
  const [title, ...known] = rows.values();
  const rule = table.split("\n")[1];
  await writeFile(path, `${head}${begin}\n${[cores, "", title, rule, ...known].join("\n")}\n${end}${tail}`);
}

const program = new Command("bench")
  .argument(
    "[names...]",
    `which of ${Object.keys(benches).join(", ")}; all but ${[...onRequest].join(", ")} when none is named`,
  )
  .option("--write", "put the lines into the table of docs/performance.md")
  .option("--chunks <count>", "how many chunks query-million writes", Number)
  .action(async (names: string[], options: Options) => {
    const lines: Measured[] = [];
    for (const name of names.length > 0 ? names : usual) {
      const bench = benches[name];
      if (!bench) throw new Error(`There is no bench ${name}; there are ${Object.keys(benches).join(", ")}.`);
      console.log(`\n${name} …`);
      const measured = await bench(options);
      console.log(toTable(measured));
      lines.push(...measured);
    }
    if (options.write && lines.length > 0) await writeTable(lines, names.length === 0);
    const missed = lines.filter((line) => !meetsMust(line));
    if (missed.length > 0) {
      console.error(`\n${missed.length} of ${lines.length} lines miss their "must".`);
      process.exitCode = 1;
    }
  });

await program.parseAsync();
