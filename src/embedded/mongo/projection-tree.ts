import type { Document } from "bson";
import { isDocument } from "./bson-types.ts";
import type { Expression } from "./expression-arguments.ts";
import { located } from "./refusals.ts";

/** What becomes of one field: kept or dropped, computed anew, changed where it is, or looked into. */
export type FieldRule =
  | { kind: "include" }
  | { kind: "exclude" }
  | { kind: "compute"; expression: Expression }
  | { kind: "transform"; transform: (value: unknown, root: Document) => unknown }
  | ProjectionNode;

export type ProjectionNode = { kind: "node"; fields: Map<string, FieldRule> };

export const newNode = (): ProjectionNode => ({ kind: "node", fields: new Map() });

/** Files a rule under its path; two rules on one path, or one inside another, collide. */
export function addRule(root: ProjectionNode, path: string, rule: FieldRule): void {
  const parts = path.split(".");
  if (parts.includes("")) throw located(40353, "FieldPath must not end with a '.' or have empty parts.");
  const last = parts.pop() ?? "";
  let node = root;
  for (const part of parts) {
    const next = node.fields.get(part) ?? newNode();
    if (next.kind !== "node") throw located(31249, `Path collision at ${path} remaining portion ${last}`);
    node.fields.set(part, next);
    node = next;
  }
  if (node.fields.has(last)) throw located(31250, `Path collision at ${path}`);
  node.fields.set(last, rule);
}

/** Whether a node or one below it computes or transforms anything. */
export function hasComputed(rule: FieldRule): boolean {
  if (rule.kind === "node") return [...rule.fields.values()].some(hasComputed);
  return rule.kind === "compute";
}

/** Whether a node keeps fields of the document as they are. */
export function hasIncluded(rule: FieldRule): boolean {
  if (rule.kind === "node") return [...rule.fields.values()].some(hasIncluded);
  return rule.kind === "include" || rule.kind === "transform";
}

/** Applies `change` to a document, or to every document in an array, however deeply nested; `other` decides on the rest. */
export function mapDocuments(
  value: unknown,
  change: (document: Document) => Document,
  other: (value: unknown) => unknown,
): unknown {
  if (isDocument(value)) return change(value);
  if (!Array.isArray(value)) return other(value);
  return value.flatMap((item: unknown) => {
    const mapped = mapDocuments(item, change, other);
    return mapped === undefined ? [] : [mapped];
  });
}
