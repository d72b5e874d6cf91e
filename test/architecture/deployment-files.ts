import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { settings } from "../../src/config/config.ts";
import { valueAt } from "../support/http-client.ts";
import { root } from "./source-files.ts";

export const read = (path: string) => readFile(join(root, path), "utf8");
export const readYaml = async (path: string): Promise<unknown> => parse(await read(path), { merge: true });
export const exists = (path: string) => access(join(root, path));
export const settingNames = Object.keys(settings);
export const defaultOf = (name: keyof typeof settings) => settings[name].schema.parse(undefined);

export const readVersion = async () => String(valueAt(JSON.parse(await read("package.json")), "version"));
/** What a start may take at least: 300 s of waiting for another process that changes the data, and the store's indexes. */
export const START_SECONDS = 400;

/** Every mapping of a tree, however deep. */
export function* mappings(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield value as Record<string, unknown>; // neither null nor a list: a mapping
  for (const inner of Object.values(value)) yield* mappings(inner);
}
