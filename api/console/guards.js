import { useState } from "preact/hooks";
import { post, put } from "./api.js";
import { html } from "./html.js";
import { useAction, useLoad } from "./load.js";
import { Facts, Field, inWords, Problem } from "./ui.js";

const kinds =
  "ssn medical_record_number date_of_birth patient_identifier card_number bank_account_number iban routing_number email_address phone_number ip_address secret".split(
    " ",
  );
const places = ["input", "output", "toolInput", "toolOutput", "ingest", "log"];
const actions = ["off", "flag", "mask", "block"];

/** @param {{ label: string, value: string, onChange: (value: string) => void }} props */
function Action({ label, value, onChange }) {
  /** @param {any} event */
  const choose = (event) => onChange(event.target.value);
  return html`<select aria-label=${label} value=${value} onChange=${choose}>${actions.map(
    (one) => html`<option value=${one} selected=${one === value}>${one}</option>`,
  )}</select>`;
}

/** @param {{ policy: any, onSaved: (policy: any) => void }} props */
function Policy({ policy, onSaved }) {
  const [rules, setRules] = useState(policy.rules);
  const { run, error, isBusy } = useAction();
  /** @param {string} kind @param {string} place */
  const set = (kind, place) => (/** @type {string} */ action) =>
    setRules((/** @type {any} */ before) => ({ ...before, [kind]: { ...before[kind], [place]: action } }));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => onSaved(await put("/guards", { ...policy, rules })));
  };
  /** @param {string} kind */
  const row = (kind) =>
    html`<tr><th scope="row">${inWords(kind)}</th>${places.map(
      (place) =>
        html`<td><${Action} label=${`${inWords(kind)}, ${inWords(place)}`} value=${rules[kind]?.[place] ?? "off"} onChange=${set(kind, place)} /></td>`,
    )}</tr>`;
  return html`<form onSubmit=${submit}><div class="scroll" tabindex="0" role="region" aria-label="Rules"><table>
    <thead><tr><th scope="col">Kind</th>${places.map((place) => html`<th scope="col">${inWords(place)}</th>`)}</tr></thead>
    <tbody>${kinds.map(row)}</tbody></table></div>
    <p class="hint">${policy.exceptions.length} exceptions, which the API changes. Regulated profiles block their kinds whatever stands here.</p>
    <button type="submit" disabled=${isBusy}>Save</button><${Problem} error=${error} /></form>`;
}

function Check() {
  const [text, setText] = useState("");
  const [found, setFound] = useState(/** @type {any} */ (undefined));
  const { run, error, isBusy } = useAction();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => setFound(await post("/guards/check", { text })));
  };
  const named = found?.findings.map((/** @type {any} */ one) => `${inWords(one.kind)}: ${one.action}`).join(", ");
  return html`<section><h2>Try a text</h2><p class="hint">As an input. No model is asked, and nothing is kept.</p>
    <form onSubmit=${submit}><${Field} label="Text" value=${text} onInput=${setText} rows="3" required /><button type="submit" disabled=${isBusy}>Try</button></form>
    <${Problem} error=${error} />${
      found
        ? html`<div role="status"><${Facts} facts=${[
            ["Found", named || "nothing"],
            ["What goes on", found.text ?? "nothing: it is blocked"],
          ]} /></div>`
        : null
    }</section>`;
}

/** What is done with identifiers and secrets. @param {{ me: any }} props */
export function Guards({ me }) {
  const policy = useLoad(me.role === "member" ? undefined : "/guards");
  if (me.role === "member") return html`<h1>Guards</h1><p class="hint">Administrators see and set them.</p>`;
  return html`<h1>Guards</h1><${Problem} error=${policy.error} />${
    policy.value ? html`<${Policy} policy=${policy.value} onSaved=${policy.set} /><${Check} />` : null
  }`;
}
