import { isDeepStrictEqual } from "node:util";
import type { Document } from "../bson/bson-types.ts";
import { keyOf } from "../bson/index-keys.ts";
import { valuesAt } from "../bson/path-values.ts";
import { type FollowingIndex, prepareRows, type Row, type Storage } from "../storage/storage.ts";
import type { TextDefinition } from "./definitions.ts";

export type TextIndex = ReturnType<typeof makeTextIndex>;
export type TextQuery = {
  text: string;
  paths: readonly string[];
  /** The tenants that are searched; undefined: all. */
  partitionValues: readonly unknown[] | undefined;
};

type Part = { id: number; rows: number };
type Entry = { key: string; columns: string[] };

const wordPattern = /[\p{L}\p{N}\p{Co}][\p{L}\p{N}\p{Co}\p{M}]*/gu;
const noPartition = "";

/**
 * How the words are filed. An index with another layout is rebuilt when it is opened. Unicode's version
 * belongs to it: it says what a word is, and a row is only unfiled by the very words that it was filed by.
 */
const layout = `3, Unicode ${process.versions.unicode}`;

/**
 * FTS5's BM25 has 1.2 for k1, which says how fast repeats of a word stop counting. With this weight of each column it is
 * 1.6: a factor of both parts of the fraction cancels out.
 */
const COLUMN_WEIGHT = 1.2 / 1.6;
/** Most words of a query that are looked up. */
const MAX_WORDS = 128;

/**
 * The words of a collection, in SQLite's FTS5. Each word is filed with the number of its tenant before it, so that a
 * tenant's search reads the postings of that tenant alone, however many others there are, and its BM25 counts that
 * tenant's documents alone. The prefix has no vowel, so that the Porter stemmer treats the word as it would without it.
 * A row is unfiled with its old words, which takes it out of FTS5's totals too: no score depends on deleted documents.
 * Makes the index if it is new, from every document of the collection.
 */
export function makeTextIndex(options: {
  storage: Storage;
  id: number;
  definition: TextDefinition;
  read: () => Iterable<Row>;
}) {
  const { definition } = options;
  const tables = openTables(options.storage, options.id, definition);
  const { parts } = tables;
  /** Adds the words of a row to its tenant's, or takes them out again. */
  const file = (rid: number, { key, columns }: Entry, change: 1 | -1) => {
    const part = parts.get(key) ?? tables.addPart(key);
    part.rows += change;
    tables.setRows.run(part.rows, part.id);
    const texts = columns.map((text) => partWords(text).replace(wordPattern, `${prefixOf(part)}$&`));
    (change === 1 ? tables.addWords : tables.removeWords).run(rid, ...texts);
  };
  const replace = (rid: number, before?: Document, next?: Document) => {
    const [old, entry] = [before && entryOf(definition, before), next && entryOf(definition, next)];
    if (isDeepStrictEqual(old, entry)) return;
    if (old !== undefined) file(rid, old, -1);
    if (entry !== undefined) file(rid, entry, 1);
  };
  const insert = (rid: number, document: Document) => replace(rid, undefined, document);
  if (tables.isNew) for (const { rid, document } of options.read()) insert(rid, document());
  const files: FollowingIndex = { insert, replace, remove: replace };
  return {
    ...files,
    definition,
    drop: tables.drop,
    /** BM25 scores of the rows that have a word of the query in one of the paths. */
    search: ({ text, paths, partitionValues }: TextQuery): Map<number, number> => {
      const columns = paths.map((path) => `c${definition.textPaths.indexOf(path)}`);
      const words = [...new Set(partWords(text.toLowerCase()).match(wordPattern))].slice(0, MAX_WORDS);
      const totalRows = parts.values().reduce((sum, part) => sum + part.rows, 0);
      const keys = new Set(partitionValues?.map(keyOf) ?? parts.keys());
      const scores = new Map<number, number>();
      for (const key of keys) {
        const part = parts.get(key);
        if (part !== undefined && part.rows > 0) scorePart({ tables, part, totalRows, words, columns }, scores);
      }
      return scores;
    },
  };
}

/** What of a document is filed; undefined when it has no text. */
function entryOf({ textPaths, partitionPath }: TextDefinition, document: Document): Entry | undefined {
  const textsAt = (path: string) => valuesAt(document, path).filter((value) => typeof value === "string");
  const columns = textPaths.map((path) => textsAt(path).join("\n"));
  if (columns.every((text) => text === "")) return undefined;
  return { key: partitionPath === undefined ? noPartition : keyOf(valuesAt(document, partitionPath)[0]), columns };
}

const prefixOf = (part: Part) => `q${part.id}q`;

type Tables = ReturnType<typeof openTables>;

function openTables({ sqlite, beginWrite }: Storage, id: number, definition: TextDefinition) {
  const names = definition.textPaths.map((_, at) => `c${at}`).join(", ");
  const words = `f${id}`;
  const parts = `p${id}`;
  sqlite.exec("CREATE TABLE IF NOT EXISTS text_layouts (id INTEGER PRIMARY KEY, layout TEXT NOT NULL)");
  const isNew = sqlite.prepare("SELECT layout FROM text_layouts WHERE id = ?").get(id)?.layout !== layout;
  if (isNew) {
    beginWrite();
    // Without `contentless_delete`: FTS5 would go on counting deleted rows, in scores and in average lengths.
    // https://www.sqlite.org/fts5.html#the_delete_command
    sqlite.exec(`
      DROP TABLE IF EXISTS ${words};
      DROP TABLE IF EXISTS ${parts};
      CREATE VIRTUAL TABLE ${words} USING fts5(
        ${names}, content='', tokenize="porter unicode61 remove_diacritics 2 categories 'L* N* M* Co'");
      CREATE TABLE ${parts} (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, rows INTEGER NOT NULL)`);
    sqlite.prepare("INSERT OR REPLACE INTO text_layouts (id, layout) VALUES (?, ?)").run(id, layout);
  }
  const known = sqlite.prepare(`SELECT id, key, rows FROM ${parts}`).all();
  const partOfKey = new Map(known.map((row) => [String(row.key), { id: Number(row.id), rows: Number(row.rows) }]));
  const insertPart = sqlite.prepare(`INSERT INTO ${parts} (key, rows) VALUES (?, 0)`);
  const weights = definition.textPaths.map(() => COLUMN_WEIGHT).join(", ");
  const marks = definition.textPaths.map(() => "?").join(", ");
  const scores = prepareRows(sqlite, `SELECT rowid, bm25(${words}, ${weights}) FROM ${words} WHERE ${words} MATCH ?`);
  const count = prepareRows(sqlite, `SELECT count(*) FROM ${words} WHERE ${words} MATCH ?`);
  return {
    isNew,
    parts: partOfKey,
    addPart: (key: string): Part => {
      const part = { id: Number(insertPart.run(key).lastInsertRowid), rows: 0 };
      partOfKey.set(key, part);
      return part;
    },
    setRows: sqlite.prepare(`UPDATE ${parts} SET rows = ? WHERE id = ?`),
    addWords: sqlite.prepare(`INSERT INTO ${words} (rowid, ${names}) VALUES (?, ${marks})`),
    removeWords: sqlite.prepare(`INSERT INTO ${words} (${words}, rowid, ${names}) VALUES ('delete', ?, ${marks})`),
    /** (row, FTS5's BM25 of one word, which is below zero and counts all tenants) */
    scores: (match: string) => scores.iterate(match) as unknown as Iterable<[number, number]>, // prepared as arrays
    count: (match: string) => Number((count.get(match) as unknown as [number])[0]), // likewise
    drop: () => sqlite.exec(`DROP TABLE ${words}; DROP TABLE ${parts}; DELETE FROM text_layouts WHERE id = ${id}`),
  };
}

/** In a tenant of this many rows, a word that more than half of them have says nothing, and is left out. */
const skipCommonFrom = 5_000;

function scorePart(
  input: { tables: Tables; part: Part; totalRows: number; words: string[]; columns: string[] },
  scores: Map<number, number>,
): void {
  const { tables, part, totalRows, columns } = input;
  const terms = input.words
    .map((word) => {
      const match = `{${columns.join(" ")}} : "${prefixOf(part)}${word}"`;
      return { match, rows: tables.count(match) };
    })
    .sort((a, b) => a.rows - b.rows);
  const before = scores.size;
  for (const [place, { match, rows }] of terms.entries()) {
    if (rows === 0) continue;
    const isCommon = part.rows > skipCommonFrom && rows > part.rows / 2;
    if (isCommon && place > 0 && scores.size > before) continue;
    const weight = weightInPart(part.rows, rows) / weightInFts(totalRows, rows);
    for (const [rid, bm25] of tables.scores(match)) scores.set(rid, (scores.get(rid) ?? 0) - bm25 * weight);
  }
}

/** Inverse document frequency as Lucene has it, over the rows of the tenant. */
function weightInPart(rows: number, rowsWithWord: number): number {
  return Math.log(1 + (rows - rowsWithWord + 0.5) / (rowsWithWord + 0.5));
}

/** The one that FTS5 has put into its score, over all rows: it is taken out again. https://www.sqlite.org/fts5.html#the_bm25_function */
function weightInFts(rows: number, rowsWithWord: number): number {
  const weight = Math.log((rows - rowsWithWord + 0.5) / (rowsWithWord + 0.5));
  return weight <= 0 ? 1e-6 : weight;
}

/** Letters of scripts in which no spaces part words, and of Korean, which attaches endings to words. */
const unspacedRun =
  /(?:[\p{L}&&[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]]\p{M}*)+/gv;
const letterWithMarks = /\P{M}\p{M}*/gu;
const ideograph = /^\p{Script=Han}/u;
/** Vowel signs of Hebrew and Arabic, which most texts leave out, and the stroke that only lengthens a word. */
const optionalSigns = /[\u0591-\u05c7\u0640\u064b-\u065f\u0670]/g;

/**
 * Brings a text into the words by which text and query are compared, in every script: optional signs are left out; a run of
 * letters without spaces becomes its overlapping pairs, and its ideographs, which may be words, stand alone too. The result
 * has at most 4 characters for each one of the text; bringing it into words again changes nothing about which they are.
 */
function partWords(text: string): string {
  return text.replace(optionalSigns, "").replace(unspacedRun, (run) => {
    const letters = run.match(letterWithMarks) ?? [];
    const words = letters.flatMap((letter, at) => {
      const next = letters[at + 1];
      const pair = next === undefined ? [] : [letter + next];
      return letters.length === 1 || ideograph.test(letter) ? [letter, ...pair] : pair;
    });
    return ` ${words.join(" ")} `;
  });
}
