import { useEffect, useState } from "preact/hooks";
import { html } from "./html.js";
import { Choice, Field, inWords } from "./ui.js";

/** Fields of a form, made from the JSON Schema of what they hold. */

/** A copy without a field, or with another value of it. @param {any} object @param {string} name @param {any} value undefined removes it */
export function withField(object, name, value) {
  const { [name]: _before, ...rest } = object ?? {};
  if (value === undefined) return rest;
  return name in (object ?? {}) ? { ...object, [name]: value } : { ...rest, [name]: value };
}

/** A value as JSON; a text that is none is kept, and told of. @param {{ label: string, value: any, onChange: (value: any) => void }} props */
export function JsonField({ label, value, onChange }) {
  const shown = value === undefined ? "" : JSON.stringify(value, null, 2);
  const [text, setText] = useState(shown);
  const [isWrong, setIsWrong] = useState(false);
  useEffect(() => {
    if (!isWrong) setText(shown);
  }, [shown]);
  /** @param {string} next */
  const change = (next) => {
    setText(next);
    try {
      onChange(next.trim() === "" ? undefined : JSON.parse(next));
      setIsWrong(false);
    } catch {
      setIsWrong(true);
    }
  };
  return html`<${Field} label=${label} rows="3" class="code" spellcheck=${false} value=${text} aria-invalid=${isWrong ? "true" : "false"} onInput=${change} />${isWrong ? html`<p class="problem">This is no JSON.</p>` : null}`;
}

/** @param {{ label: string, value: any, onChange: (value: any) => void }} props */
export const Check = ({ label, value, onChange }) =>
  html`<label><input type="checkbox" checked=${value === true} onChange=${(/** @type {any} */ event) => onChange(event.target.checked || undefined)} /> ${label}</label>`;

/** One collection of documents or several; none chosen means all that the key may use. @param {{ value: any, names: readonly string[], onChange: (value: any) => void }} props */
export function CollectionPicker({ value, names, onChange }) {
  const chosen = value === undefined ? [] : [value].flat();
  const all = [...new Set([...names, ...chosen])];
  /** @param {string} name */
  const turn = (name) => {
    const next = chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name];
    onChange(next.length === 0 ? undefined : next.length === 1 ? next[0] : next);
  };
  return html`<fieldset class="wide"><legend>Collections (none chosen: all)</legend>${all.map((name) => html`<label class="inline"><input type="checkbox" checked=${chosen.includes(name)} onChange=${() => turn(name)} /> ${name}</label>`)}</fieldset>`;
}

/** Texts, one a line. @param {{ label: string, value: any, onChange: (value: any) => void }} props */
function Lines({ label, value, onChange }) {
  /** @param {string} text */
  const change = (text) => {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    onChange(lines.length === 0 ? undefined : lines);
  };
  return html`<${Field} label=${`${label}, one a line`} rows="2" value=${(value ?? []).join("\n")} onInput=${change} />`;
}

/**
 * A field for a value of a schema.
 * @param {{ name: string, schema: any, value: any, isRequired?: boolean, collections: readonly string[], onChange: (value: any) => void }} props
 */
export function SchemaField({ name, schema, value, isRequired = false, collections, onChange }) {
  const label = isRequired ? inWords(name) : `${inWords(name)} (optional)`;
  const about = { title: schema.description, placeholder: schema.default };
  if (name === "collection")
    return html`<${CollectionPicker} value=${value} names=${collections} onChange=${onChange} />`;
  const canBeTrue = schema.anyOf?.some((/** @type {any} */ one) => one.const === true);
  if (schema.type === "boolean" || (canBeTrue && (value === undefined || value === true)))
    return html`<${Check} label=${inWords(name)} value=${value} onChange=${onChange} />`;
  if (schema.enum)
    return html`<${Choice} label=${label} value=${value ?? ""} options=${schema.enum} all="…" onChange=${(/** @type {string} */ text) => onChange(text || undefined)} />`;
  if (schema.type === "integer" || schema.type === "number")
    return html`<${Field} ...${about} label=${label} type="number" step="any" value=${value ?? ""} required=${isRequired} onInput=${(/** @type {string} */ text) => onChange(text === "" ? undefined : Number(text))} />`;
  if (schema.type === "string")
    return html`<${Field} ...${about} label=${label} value=${value ?? ""} required=${isRequired} onInput=${(/** @type {string} */ text) => onChange(text || undefined)} />`;
  if (schema.type === "array" && schema.items?.type === "string")
    return html`<${Lines} label=${label} value=${value} onChange=${onChange} />`;
  return html`<${JsonField} label=${`${label}, as JSON`} value=${value} onChange=${onChange} />`;
}

/** A field for each property of an object. @param {{ schema: any, value: any, collections: readonly string[], onChange: (value: any) => void }} props */
export function SchemaFields({ schema, value, collections, onChange }) {
  return Object.entries(schema?.properties ?? {}).map(
    ([name, field]) =>
      html`<${SchemaField} key=${name} name=${name} schema=${field} value=${value?.[name]} isRequired=${schema.required?.includes(name) ?? false} collections=${collections} onChange=${(/** @type {any} */ next) => onChange(withField(value, name, next))} />`,
  );
}
