import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { openApi } from "../../../scripts/cli/api.ts";
import { type Measured as Figures, measure, toSetting } from "../../../scripts/retrieval-check/measure.ts";
import type { Question } from "../../../scripts/retrieval-check/questions.ts";
import { startFakeProvider } from "../../support/fake-provider/server.ts";
import { pollUntil } from "../../support/poll-until.ts";
import type { Measured } from "./goals.ts";
import { runConcurrently } from "./measure.ts";
import { openStack, type Stack } from "./stack.ts";

const MODEL = "scribe/small";
const CALLS_AT_ONCE = 4;
/** How long a document may take on a busy machine, and how often it is asked for, in ms. */
const INDEXED_WITHIN_MS = 20 * 60_000;
const POLL_MS = 200;
const endStates = ["indexed", "failed"] as const;
const settings = ["lexical", "hybrid", "hybrid,minCoverage=0.5", `hybrid,rewrite=${MODEL},minCoverage=0.5`];

const lines = {
  manual: z.object({ manual: z.string(), files: z.array(z.string()) }),
  asked: z.object({ id: z.string(), question: z.string() }),
  written: z.object({ id: z.string(), searches: z.array(z.string()) }),
  gold: z.object({
    id: z.string(),
    file: z.string(),
    contains: z.array(z.string()),
    also: z.array(z.object({ file: z.string(), contains: z.array(z.string()) })).default([]),
  }),
};

/**
 * How well manuals answer questions, with rewriting by a script and without. `data` is a folder with `documents.json`, a list of
 * `{ manual, files }`, and `questions.jsonl` (`{ id, question }`), `rewrites.jsonl` (`{ id, searches }`, written without sight
 * of the passages), `gold.jsonl` (`{ id, file, contains, also }`) and `unanswerable.jsonl` (`{ id, question }`).
 */
export async function questionsBench(data: URL): Promise<Measured[]> {
  const read = async <T>(file: string, line: z.ZodType<T>): Promise<T[]> =>
    (await readFile(new URL(file, data), "utf8"))
      .split("\n")
      .flatMap((text) => (text ? [line.parse(JSON.parse(text))] : []));
  const manuals = z.array(lines.manual).parse(JSON.parse(await readFile(new URL("documents.json", data), "utf8")));
  const asked = await read("questions.jsonl", lines.asked);
  const gold = new Map((await read("gold.jsonl", lines.gold)).map((one) => [one.id, one]));
  const written = new Map((await read("rewrites.jsonl", lines.written)).map(({ id, searches }) => [id, searches]));
  const unanswerable = await read("unanswerable.jsonl", lines.asked);
  const scribe = await startFakeProvider();
  const searchesOf = new Map(asked.map(({ id, question }) => [question, written.get(id) ?? []]));
  scribe.setDefault(({ messages }) => {
    const { content } = z.object({ content: z.string() }).parse([messages].flat().at(-1));
    return { pieces: [(searchesOf.get(content) ?? [content]).join("\n")] };
  });
  const stack = await openStack({ workers: 2, env: { FETCH_ALLOW_ORIGINS: scribe.origin, STORE_TIMEOUT_MS: "60000" } });
  try {
    await addScribe(stack, scribe.url);
    const idOf = await ingestFiles(
      stack,
      data,
      manuals.flatMap(({ files }) => files),
    );
    const places = (id: string) => {
      const found = gold.get(id);
      const all = found ? [found, ...found.also] : [];
      return all.map(({ file, contains }) => ({ documentId: idOf.get(file), contains }));
    };
    const questions: Question[] = [
      ...asked.map(({ id, question }) => ({ question, places: places(id) })),
      ...unanswerable.map(({ question }) => ({ question, places: [] })),
    ];
    const key = stack.headers.authorization?.replace("Bearer ", "") ?? "";
    const api = openApi({ url: stack.url, key });
    const rows: Figures[] = [];
    for (const name of settings) rows.push(await measure({ api, questions }, toSetting(name)));
    printRows(rows);
    printMissed(rows, asked);
    return toLines(rows);
  } finally {
    await stack.close();
    await scribe.close();
  }
}

async function addScribe({ url, headers }: Stack, baseUrl: string): Promise<void> {
  const models = [{ id: "small", type: "chat", contextWindow: 32_000, inputUsdPerMTok: 1, outputUsdPerMTok: 1 }];
  const body = JSON.stringify({ baseUrl, key: "sk-scribe-0123456789abcdef", wire: "openai-chat", models });
  const put = await fetch(`${url}/ai/providers/custom/scribe`, { method: "PUT", headers, body });
  if (!put.ok) throw new Error(`the rewriter was not added: ${await put.text()}`);
}

/** Uploads the files of a folder, and returns the id of each one's document. */
async function ingestFiles({ url, headers }: Stack, data: URL, files: readonly string[]): Promise<Map<string, string>> {
  const idOf = new Map<string, string>();
  const { "content-type": _json, ...others } = headers;
  await runConcurrently(files.length, CALLS_AT_ONCE, async (index) => {
    const file = files[index] ?? "";
    const form = new FormData();
    form.set("file", new Blob([await readFile(fileURLToPath(new URL(file, data)))]), basename(file));
    const sent = { method: "POST", headers: { ...others, prefer: "wait=120" }, body: form };
    const response = await fetch(`${url}/rag/ingest`, sent);
    const { documentId } = z.looseObject({ documentId: z.string() }).parse(await response.json());
    const status = await pollUntil(
      async () => {
        const read = await fetch(`${url}/rag/documents/${documentId}`, { headers: others });
        const { status: state } = z.looseObject({ status: z.string() }).parse(await read.json());
        return endStates.find((end) => end === state);
      },
      { timeoutMs: INDEXED_WITHIN_MS, everyMs: POLL_MS, what: `${file} to be indexed` },
    );
    if (status !== "indexed") throw new Error(`${file} is ${status}`);
    idOf.set(file, documentId);
  });
  return idOf;
}

function toLines([lexical, hybrid, , rewritten]: readonly Figures[]): Measured[] {
  const of = (row: Figures | undefined, name: string) => row?.figures[name] ?? Number.NaN;
  const line = (what: string, value: number, must: number): Measured => ({
    ...{ what: `questions, ${what}`, anchor: "goal", product: value.toFixed(3) },
    ...{ value, must, aim: must, isMoreBetter: true, unit: "" },
  });
  return [
    line("recall@5 with rewriting", of(rewritten, "recall@5"), 0.8),
    line("recall@30 with rewriting", of(rewritten, "recall@30"), 0.95),
    line("recall@5 of hybrid less that of words alone", of(hybrid, "recall@5") - of(lexical, "recall@5"), -0.02),
    line("recall@30 of hybrid less that of words alone", of(hybrid, "recall@30") - of(lexical, "recall@30"), -0.02),
    line("refused of what is not answered, at 0.5", of(rewritten, "refused"), 0.9),
    line("kept of what is answered, at 0.5, with rewriting", of(rewritten, "kept"), 0.9),
  ];
}

function printRows(rows: readonly Figures[]): void {
  const names = Object.keys(rows[0]?.figures ?? {});
  console.log(`\n| setting | ${names.join(" | ")} |\n|---|${names.map(() => "---|").join("")}`);
  for (const { setting, figures } of rows)
    console.log(`| ${setting.name} | ${names.map((name) => (figures[name] ?? Number.NaN).toFixed(3)).join(" | ")} |`);
}

/** The questions that a setting does not find among five, and where it finds them. */
function printMissed(rows: readonly Figures[], asked: readonly { id: string }[]): void {
  for (const { setting, outcomes } of rows) {
    const missed = asked.flatMap(({ id }, at) => {
      const { rank = 0, coverage = 0 } = outcomes[at] ?? {};
      return rank > 0 && rank <= 5 ? [] : [`${id} ${rank || "-"} (${coverage.toFixed(2)})`];
    });
    console.log(`${setting.name}: not among five: ${missed.join(", ")}`);
  }
  for (const { setting, outcomes } of rows.slice(2)) {
    const least = outcomes.map(
      ({ coverage }, at) => `${asked[at]?.id ?? `u${at - asked.length + 1}`} ${coverage.toFixed(2)}`,
    );
    const low = least.filter((one) => Number(one.split(" ")[1]) < 0.5 === one.startsWith("q"));
    console.log(`${setting.name}: on the wrong side of 0.5: ${low.join(", ")}`);
  }
}
