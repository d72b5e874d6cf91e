import { useDraft } from "./drafts.js";
import { html } from "./html.js";
import { Choice, Field } from "./ui.js";

/** The input of a workflow: a form made from its schema, or JSON. */

/** Types of properties that have a field of their own in the form. */
const simple = ["string", "number", "integer", "boolean"];

/** The properties of a schema, when all of them are simple; else the input is written as JSON. @param {any} schema */
function fieldsOf(schema) {
  const fields = Object.entries(schema?.properties ?? {});
  const areSimple = fields.every(([, field]) => simple.includes(/** @type {any} */ (field)?.type));
  return schema?.type === "object" && fields.length > 0 && areSimple ? fields : undefined;
}

/** @param {string} text @param {string} type */
function toValue(text, type) {
  if (type === "boolean") return text === "true";
  return type === "string" ? text : Number(text);
}

/** @param {{ name: string, field: any, isRequired: boolean, value: string, onInput: (value: string) => void }} props */
function InputField({ name, field, isRequired, value, onInput }) {
  const label = `${field.title ?? name}${isRequired ? "" : " (optional)"}`;
  const options = field.type === "boolean" ? ["true", "false"] : field.enum;
  if (options) return html`<${Choice} label=${label} value=${value} options=${options} all="…" onChange=${onInput} />`;
  const type = field.type === "string" ? "text" : "number";
  return html`<${Field} label=${label} type=${type} step="any" value=${value} onInput=${onInput} required=${isRequired} />`;
}

/**
 * The fields of an input, and what is written there.
 * @param {any} schema
 * @param {(name: string, initial?: string) => [string, (text: string) => void, ...any]} useText where it is kept
 */
export function useInput(schema, useText = useDraft) {
  const [json, setJson, forgetJson] = useText("input-json", "");
  const [kept, keep, forgetFields] = useText("input-fields", "{}");
  const fields = fieldsOf(schema);
  /** @type {Record<string, string>} */
  const values = JSON.parse(kept);
  /** @param {string} field @param {string} value */
  const set = (field, value) => {
    const { [field]: _before, ...others } = values;
    keep(JSON.stringify(value === "" ? others : { ...others, [field]: value }));
  };
  return {
    /** The body that has the input. @throws SyntaxError for a text that is no JSON. */
    read() {
      if (!fields) return json.trim() === "" ? {} : { input: JSON.parse(json) };
      const given = fields.filter(([field]) => (values[field] ?? "") !== "");
      const toEntry = (/** @type {[string, any]} */ [field, { type }]) => [field, toValue(values[field] ?? "", type)];
      return { input: Object.fromEntries(given.map(toEntry)) };
    },
    forget() {
      forgetJson();
      forgetFields();
    },
    fields: fields
      ? fields.map(
          ([field, about]) =>
            html`<${InputField} key=${field} name=${field} field=${about} isRequired=${schema.required?.includes(field) ?? false} value=${values[field] ?? ""} onInput=${(/** @type {string} */ value) => set(field, value)} />`,
        )
      : html`<${Field} label="Input, as JSON" rows="4" class="code" value=${json} onInput=${setJson} />`,
  };
}
