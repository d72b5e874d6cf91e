import { html } from "./html.js";
import { useLoad } from "./load.js";
import { addressOf } from "./router.js";
import { RunOf } from "./runs.js";
import { bytes, Facts, IdLink, inWords, money, Problem, Text, Time } from "./ui.js";

/** What has no screen of its own, by its id: as the API responds with it. */

/** Values that stand beside their names. @param {any} record */
const simple = (record) =>
  Object.entries(record).filter(([, value]) => ["string", "number"].includes(typeof value) && `${value}`.length <= 200);

/** A value with its unit: vendors' times are seconds of Unix, or ISO. @param {[string, any]} field */
function shown([name, value]) {
  if (/_at$/.test(name))
    return html`<${Time} at=${new Date(typeof value === "number" ? value * 1_000 : value).toISOString()} />`;
  if (name === "costUsd") return money(value);
  return name === "bytes"
    ? bytes(value)
    : html`<${IdLink} id=${String(value)} text=${addressOf(String(value)) ? undefined : value} />`;
}

/** A screen of one record. @param {string} title @param {string} path what comes before its id */
const screenOf = (title, path) =>
  /** @param {{ id: string }} props */
  function Record({ id }) {
    const { value, error } = useLoad(`${path}/${id}`);
    if (!value) return html`<h1>${title}</h1><${Problem} error=${error} />`;
    const facts = simple(value).map((field) => [inWords(field[0]), shown(field)]);
    return html`<h1>${title}</h1><${Facts} facts=${facts} /><${Text} value=${value} label="All of it" />`;
  };

export const Response = screenOf("Response", "/v1/responses");
export const Batch = screenOf("Batch", "/v1/batches");
export const MessageBatch = screenOf("Batch of messages", "/v1/messages/batches");
export const File = screenOf("File", "/v1/files");

/** A workflow's run, which is shown with its job. @param {{ id: string, me: any }} props */
export const WorkflowRun = ({ id, me }) => html`<${RunOf} path=${`/workflows/runs/${id}`} me=${me} />`;
