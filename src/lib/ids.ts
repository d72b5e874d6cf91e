import { hash, randomFillSync } from "node:crypto";
import { decodeTime, encodeTime, monotonicFactory } from "ulidx";
import { z } from "zod";

/** What each id prefix stands for. An id is the prefix, an underscore and a ULID, so ids of a kind sort by creation. */
export const idPrefixes = {
  tenant: "ten",
  organization: "org",
  apiKey: "key",
  session: "ses",
  document: "doc",
  reindex: "rix",
  agent: "agt",
  run: "run",
  tool: "tool",
  workflow: "wf",
  workflowRun: "wfr",
  approval: "apr",
  wait: "wait",
  execution: "exe",
  job: "job",
  log: "log",
  request: "req",
  batch: "bat",
  response: "resp",
  conversation: "conv",
  message: "msg",
  compaction: "cmp",
  file: "file",
  fileBatch: "batch",
  messageBatch: "msgbatch",
  vectorStore: "vs",
  vectorStoreBatch: "vsfb",
  source: "src",
  schedule: "sch",
  firing: "fir",
  trigger: "trg",
  event: "evt",
  eventSource: "evs",
  webhook: "whk",
  delivery: "dlv",
} as const;
export type IdKind = keyof typeof idPrefixes;

const nextUlid = monotonicFactory(makePooledRandom());

/** Random numbers from 0 up to 1. Bytes are drawn from the system many at a time: one by one they cost more than the id. */
function makePooledRandom(): () => number {
  const pool = new Uint8Array(4_096);
  let used = pool.length;
  return () => {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    const byte = pool[used] ?? 0;
    used += 1;
    return byte / 256;
  };
}

/** A new id of a kind, as `doc_01J…`. Ids made by one process are strictly increasing. */
export function newId(kind: IdKind): string {
  return `${idPrefixes[kind]}_${nextUlid()}`;
}

const idPattern = (prefix: string) => new RegExp(`^(?:${prefix})_[0-9A-HJKMNP-TV-Z]{26}$`);

/** The schema of an id of one of these kinds, for paths and bodies. */
export function idSchema(...kinds: [IdKind, ...IdKind[]]) {
  const prefixes = kinds.map((kind) => idPrefixes[kind]);
  const begins = prefixes.map((prefix) => `${prefix}_`).join(" or ");
  return z.string().regex(idPattern(prefixes.join("|")), `must be an id that begins with ${begins}`);
}

const anyId = idPattern(Object.values(idPrefixes).join("|"));

/** Whether a text is an id of any kind. */
export const isId = (text: string): boolean => anyId.test(text);

/** Crockford's base 32, as ULIDs are written. */
const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The id of a kind that `from` always leads to, dated `at`: for what must not be made twice. */
export function derivedId(kind: IdKind, { at, from }: { at: Date; from: string }): string {
  return `${idPrefixes[kind]}_${encodeTime(at.getTime(), 10)}${hashDigits(`${kind}\n${from}`)}`;
}

/** The id of a kind before all that were made at a time or later. */
export function firstIdAt(kind: IdKind, at: Date): string {
  return `${idPrefixes[kind]}_${encodeTime(Math.max(0, at.getTime()), 10)}${"0".repeat(16)}`;
}

/** When an id was made, in ms since 1970. */
export const timeOfId = (id: string): number => decodeTime(id.slice(id.indexOf("_") + 1));

/** What stands in a ULID for its random part, by a hash of the text. */
export function hashDigits(text: string): string {
  const bytes = hash("sha256", text, "buffer");
  let made = "";
  for (let place = 0; place < 16; place += 1) made += digits[(bytes[place] ?? 0) % digits.length];
  return made;
}
