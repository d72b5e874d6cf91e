import { useEffect, useState } from "preact/hooks";
import { get } from "./api.js";

/** What the API says of its bodies: forms are made from it, and unknown fields are named by it. */

/** @type {Promise<any> | undefined} */
let loading;

/** The OpenAPI document, once it is there; undefined before, and where it does not load. */
export function useReference() {
  const [document, setDocument] = useState(/** @type {any} */ (undefined));
  useEffect(() => {
    let isCurrent = true;
    loading ??= get("/openapi.json");
    loading.then(
      (value) => isCurrent && setDocument(value),
      () => {
        loading = undefined;
      },
    );
    return () => {
      isCurrent = false;
    };
  }, []);
  return document;
}

/** A schema itself, of one that refers to it. @param {any} reference @param {any} schema @returns {any} */
export function resolve(reference, schema) {
  const name = schema?.$ref?.split("/").at(-1);
  return name === undefined ? schema : resolve(reference, reference.components.schemas[name]);
}

/** The schema of the body that makes a definition. @param {any} reference @param {string} path */
export const bodyOf = (reference, path) =>
  resolve(reference, reference?.paths[path]?.post.requestBody.content["application/json"].schema);

/** The one of several schemas that a value is meant for: by the constant of its `type`. @param {any} reference @param {any} schema @param {any} value */
function chooseBranch(reference, schema, value) {
  const branches = (schema.oneOf ?? schema.anyOf)?.map((/** @type {any} */ one) => resolve(reference, one));
  if (branches === undefined) return schema;
  const isMeant = (/** @type {any} */ one) => one.properties?.type?.const === value.type;
  return (
    branches.find(isMeant) ?? branches.find((/** @type {any} */ one) => one.type === "object" && !one.properties?.type)
  );
}

/**
 * The paths of a value's fields that its schema does not know, as `tools[0].config.top`.
 * @param {any} reference @param {any} schema @param {any} value @param {string} [path] @returns {string[]}
 */
export function unknownFields(reference, schema, value, path = "") {
  if (Array.isArray(value)) {
    const items = resolve(reference, schema)?.items;
    return items ? value.flatMap((one, at) => unknownFields(reference, items, one, `${path}[${at}]`)) : [];
  }
  if (typeof value !== "object" || value === null) return [];
  const meant = chooseBranch(reference, resolve(reference, schema), value);
  if (meant?.properties === undefined || typeof meant.additionalProperties === "object") return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const place = path === "" ? name : `${path}.${name}`;
    const known = meant.properties[name];
    return known === undefined ? [place] : unknownFields(reference, known, field, place);
  });
}
