import { Command } from "commander";
import { ApiRejection, keyOption, openApi, urlOption } from "./cli/api.ts";
import {
  type Least,
  type Measured,
  measure,
  measureAnswers,
  type Setting,
  toLeast,
  toSetting,
} from "./retrieval-check/measure.ts";
import { type Question, readQuestions } from "./retrieval-check/questions.ts";

/** Questions that the table names which were not found. */
const MAX_SHOWN = 20;
const FAILED = 1;
const REFUSED = 2;

type Options = {
  url: string;
  key?: string;
  setting?: Setting[];
  collection?: string;
  answers?: true | string;
  judge?: string;
  least?: Least[];
  json?: true;
};

/** `npm run retrieval-check`: measures how well your documents answer questions whose answers you know, by several settings. */
const program = new Command("retrieval-check")
  .description("Measure retrieval with your own questions: recall, MRR, coverage, and answers.")
  .argument(
    "<file>",
    "JSONL of {question, documentId or title, contains?, also?, answer?}; without a place: no document answers",
  )
  .addOption(urlOption())
  .addOption(keyOption())
  .option(
    "--setting <words>",
    "how to search, as hybrid,rewrite=gpt-5-mini,rerank,minCoverage=0.5; several are compared (default: lexical and hybrid)",
    (text: string, former: Setting[] = []) => [...former, toSetting(text)],
  )
  .option("--collection <name>", "the collection that is searched; default: all")
  .option("--answers [model]", "ask /rag/answer too, with the last setting")
  .option("--judge <model>", "have a model compare the answers with those of the file")
  .option("--least <what=share>", "exit with 1 if the last setting has less, as recall@5=0.8; may be repeated", toLeast)
  .option("--json", "print the figures as JSON, and nothing else")
  .action(async (file: string, options: Options) => {
    process.exitCode = await check(file, options).catch((error: unknown) => {
      console.error(error instanceof Error ? error.message : error);
      return error instanceof ApiRejection ? REFUSED : FAILED;
    });
  });

async function check(file: string, options: Options): Promise<number> {
  if (options.key === undefined) throw new ApiRejection("Give a key: --key, or KEY in the environment.");
  const { setting: settings = ["lexical", "hybrid"].map(toSetting), collection, least = [] } = options;
  const questions = await readQuestions(file);
  const asking = { api: openApi({ url: options.url, key: options.key }), questions, collection };
  const rows: Measured[] = [];
  for (const setting of settings) rows.push(await measure(asking, setting));
  const last = rows.at(-1);
  if (!last) return FAILED;
  const model = typeof options.answers === "string" ? options.answers : undefined;
  const answered = options.answers
    ? await measureAnswers(asking, { setting: last.setting, model, judge: options.judge })
    : undefined;
  const changes = rows.slice(1).map((row, at) => compare(rows[at] ?? row, row));
  const figures = rows.map(({ setting: { name }, figures }) => ({ setting: name, ...figures }));
  const notFound = questions.filter(({ places }, at) => places.length > 0 && last.outcomes[at]?.rank === 0);
  if (options.json) {
    const missed = notFound.map(({ question }) => question);
    console.log(JSON.stringify({ questions: questions.length, figures, changes, missed, answers: answered }, null, 2));
  } else print({ figures, changes, answered, count: questions.length, notFound });
  const held: Record<string, number> = { ...last.figures, ...answered };
  const missed = least.filter(({ name, value }) => !((held[name] ?? Number.NaN) >= value));
  for (const { name, value } of missed) console.error(`${name} is ${show(held[name])}, not ${value}.`);
  return missed.length > 0 ? FAILED : 0;
}

/** How many questions a setting finds earlier, or later, than the one before. */
function compare(before: Measured, after: Measured) {
  const rankOf = (rank: number | undefined) => rank || Number.POSITIVE_INFINITY;
  const pairs = after.outcomes.map(({ rank }, at) => [rankOf(before.outcomes[at]?.rank), rankOf(rank)] as const);
  return {
    setting: after.setting.name,
    against: before.setting.name,
    better: pairs.filter(([a, b]) => b < a).length,
    worse: pairs.filter(([a, b]) => b > a).length,
  };
}

/** Where an answer was looked for: a title that no document has, or words that it does not have, are found here. */
const toPlace = ({ documentId, title, contains = [] }: Question["places"][number]) =>
  [documentId ?? title, ...[contains].flat().map((text) => `"${text}"`)].join(", ");

const show = (value: number | undefined) => (value === undefined || Number.isNaN(value) ? "-" : value.toFixed(3));

function print({
  figures,
  changes,
  answered,
  count,
  notFound,
}: {
  figures: (Record<string, number> | { setting: string })[];
  changes: ReturnType<typeof compare>[];
  answered: Record<string, number> | undefined;
  count: number;
  notFound: readonly Question[];
}): void {
  const rows = figures.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, typeof value === "number" ? show(value) : String(value)]),
    ),
  );
  const names = Object.keys(rows[0] ?? {});
  const widths = names.map((name) => Math.max(name.length, ...rows.map((row) => (row[name] ?? "").length)));
  const toLine = (cells: readonly string[]) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd();
  console.log(`${count} questions\n${toLine(names)}`);
  for (const row of rows) console.log(toLine(names.map((name) => row[name] ?? "")));
  for (const { setting, against, better, worse } of changes)
    console.log(`${setting} against ${against}: ${better} found earlier, ${worse} later`);
  for (const { question, places } of notFound.slice(0, MAX_SHOWN))
    console.log(`not found: ${question} (${places.map(toPlace).join("; ")})`);
  if (notFound.length > MAX_SHOWN) console.log(`not found: ${notFound.length - MAX_SHOWN} more, which --json lists`);
  if (answered)
    console.log(`answers: cited ${show(answered.cited)}, correct ${show(answered.correct)}, ${show(answered.usd)} USD`);
}

await program.parseAsync();
