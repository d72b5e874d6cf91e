import { html } from "./html.js";
import { useLoad } from "./load.js";
import { Run } from "./runs.js";
import { Facts, IdLink, Problem, Text } from "./ui.js";

/** What has no screen of its own, by its id: as the API responds with it. */

/** Values that stand beside their names. @param {any} record */
const simple = (record) =>
  Object.entries(record).filter(([, value]) => ["string", "number"].includes(typeof value) && `${value}`.length <= 200);

/** A screen of one record. @param {string} title @param {string} path what comes before its id */
const screenOf = (title, path) =>
  /** @param {{ id: string }} props */
  function Record({ id }) {
    const { value, error } = useLoad(`${path}/${id}`);
    if (!value) return html`<h1>${title}</h1><${Problem} error=${error} />`;
    const facts = simple(value).map(([name, field]) => [name, html`<${IdLink} id=${String(field)} />`]);
    return html`<h1>${title}</h1><${Facts} facts=${facts} /><${Text} value=${value} label="All of it" />`;
  };

export const Response = screenOf("Response", "/v1/responses");
export const Batch = screenOf("Batch", "/v1/batches");
export const MessageBatch = screenOf("Batch of messages", "/v1/messages/batches");
export const File = screenOf("File", "/v1/files");

/** A workflow's run, which is shown with its job. @param {{ id: string }} props */
export function WorkflowRun({ id }) {
  const run = useLoad(`/workflows/runs/${id}`);
  if (!run.value) return html`<h1>Workflow run</h1><${Problem} error=${run.error} />`;
  return html`<${Run} id=${run.value.jobId} />`;
}
