import { monotonicFactory } from "ulidx";
import { z } from "zod";

/** What each id prefix stands for. An id is the prefix, an underscore and a ULID, so ids of a kind sort by creation. */
export const idPrefixes = {
  tenant: "ten",
  organization: "org",
  apiKey: "key",
  document: "doc",
  agent: "agt",
  run: "run",
  workflow: "wf",
  workflowRun: "wfr",
  approval: "apr",
  job: "job",
  log: "log",
  request: "req",
} as const;
export type IdKind = keyof typeof idPrefixes;

const nextUlid = monotonicFactory();

/** A new id of a kind, as `doc_01J…`. Ids made by one process are strictly increasing. */
export function newId(kind: IdKind): string {
  return `${idPrefixes[kind]}_${nextUlid()}`;
}

/** The schema of an id of a kind, for paths and bodies. */
export function idSchema(kind: IdKind) {
  return z
    .string()
    .regex(new RegExp(`^${idPrefixes[kind]}_[0-9A-HJKMNP-TV-Z]{26}$`), `must be an id that begins with ${idPrefixes[kind]}_`);
}
