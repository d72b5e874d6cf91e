import { readFile } from "node:fs/promises";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, InvalidArgumentError } from "commander";
import { type Area, areas } from "./mutate/areas.ts";
import { type Mutant, makeMutants } from "./mutate/make-mutants.ts";
import { type Accepted, changeOf, mutateArea, type Result, sample } from "./mutate/run.ts";

type Options = {
  most: number;
  seed: number;
  jobs: number;
  line?: number;
  list?: boolean;
  test?: string[];
  verbose?: boolean;
};

const root = fileURLToPath(new URL("..", import.meta.url));
const acceptedFile = fileURLToPath(new URL("./mutate/accepted.json", import.meta.url));

const number = (from: number) => (text: string) => {
  const value = Number(text);
  if (!(value >= from)) throw new InvalidArgumentError(`It must be a number of at least ${from}.`);
  return value;
};

/** `npm run mutate`: breaks the promises one by one in copies of the project, and reports the breaks that no test notices. */
const program = new Command("mutate")
  .description("break the code that keeps promises in one place after the other; report what no test notices")
  .argument("[names...]", `areas or files; all areas when there are none: ${Object.keys(areas).join(", ")}`)
  .option("--most <n>", "the most mutants of each file, chosen by the seed", number(1), Number.POSITIVE_INFINITY)
  .option("--seed <n>", "the same seed chooses the same mutants", number(0), 1)
  .option("--jobs <n>", "test runs at a time", number(1), 2)
  .option("--line <n>", "only mutants of this line", number(1))
  .option("--test <files...>", "test files to run instead of the area's")
  .option("--list", "list the mutants and run nothing")
  .option("--verbose", "print which test noticed each mutant")
  .action(async (names: string[], options: Options) => {
    const chosen = chooseAreas(names, options.test);
    const pick = (mutants: readonly Mutant[]) =>
      sample(
        mutants.filter(({ line }) => options.line === undefined || line === options.line),
        options,
      );
    if (options.list) {
      for (const file of chosen.flatMap(([, { files }]) => files)) {
        for (const mutant of pick(makeMutants(file, await readFile(`${root}/${file}`, "utf8"))))
          console.log(show(mutant));
      }
      return;
    }
    const accepted = JSON.parse(await readFile(acceptedFile, "utf8")) as Accepted[]; // written by hand, beside this program
    const results: Result[] = [];
    for (const [name, area] of chosen) {
      console.log(`\n${name}: ${area.tests.length} test files without a mutant first`);
      const onResult = (result: Result, left: number) => {
        if (options.verbose || isUnnoticed(result)) console.log(`${toLine(result)}  (${left} left)`);
      };
      results.push(...(await mutateArea({ root, area, pick, accepted, jobs: options.jobs, onResult })));
    }
    console.log(`\n${toTable(results)}`);
    if (results.some(isUnnoticed)) process.exitCode = 1;
  });

function chooseAreas(names: readonly string[], tests: readonly string[] | undefined): [name: string, area: Area][] {
  const all = Object.entries(areas);
  const found = names.flatMap((given): [string, Area][] => {
    const file = relative(root, given);
    const ofName = all.filter(([name, { files }]) => name === given || files.includes(file));
    if (ofName.length === 0) throw new Error(`There is no area or file of an area that is named ${given}.`);
    return ofName.map(([name, area]) => [name, name === given ? area : { ...area, files: [file] }]);
  });
  return (names.length === 0 ? all : found).map(([name, area]) => [name, { ...area, tests: tests ?? area.tests }]);
}

const isUnnoticed = ({ outcome, why }: Result) => outcome.end === "passed" && why === undefined;
const show = (mutant: Mutant) => `${mutant.file}:${mutant.line}  ${changeOf(mutant)}`;

function toLine({ mutant, outcome, why }: Result): string {
  if (outcome.end === "failed") return `noticed   ${show(mutant)}  by «${outcome.test}»`;
  if (outcome.end === "timeout") return `too slow  ${show(mutant)}`;
  return why === undefined ? `SURVIVED  ${show(mutant)}` : `accepted  ${show(mutant)}: ${why}`;
}

function toTable(results: readonly Result[]): string {
  const files = [...new Set(results.map(({ mutant }) => mutant.file))];
  const row = (name: string, of: readonly Result[]) => {
    const passed = of.filter(({ outcome }) => outcome.end === "passed");
    const slow = of.filter(({ outcome }) => outcome.end === "timeout").length;
    const survived = passed.filter(isUnnoticed).length;
    const numbers = [of.length, of.length - passed.length - slow, slow, passed.length - survived, survived];
    return [name.padEnd(40), ...numbers.map((value) => String(value).padStart(9))].join("");
  };
  const titles = ["mutants", "noticed", "too slow", "accepted", "survived"].map((title) => title.padStart(9));
  return [
    `${"file".padEnd(40)}${titles.join("")}`,
    ...files.map((file) =>
      row(
        file,
        results.filter(({ mutant }) => mutant.file === file),
      ),
    ),
    row("all", results),
  ].join("\n");
}

await program.parseAsync();
