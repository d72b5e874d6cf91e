import htm from "htm";
import { h } from "preact";

/** @type {{ bind(create: typeof h): (strings: TemplateStringsArray, ...values: any[]) => any }} */
const templates = /** @type {any} */ (htm);

/** Elements as tagged templates. What is put in is text, never markup. */
export const html = templates.bind(h);
