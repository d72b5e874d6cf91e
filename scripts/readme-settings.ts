import { readFile, writeFile } from "node:fs/promises";
import { settings } from "../src/config/config.ts";
import { withTable } from "./readme-tables.ts";

const path = new URL("../docs/settings.md", import.meta.url);

/** The table of settings in the documentation, made from the one table that is read at start. */
function settingsTable(): string {
  const rows = Object.entries(settings).map(([name, { schema, about, shown }]) => {
    const fallback = schema.safeParse(undefined);
    const value = fallback.success ? fallback.data : undefined;
    const text = shown ?? (value === undefined || `${value}` === "" ? "" : `\`${value}\``);
    return `| \`${name}\` | ${text} | ${about} |`;
  });
  return ["| setting | default | what it is |", "|---|---|---|", ...rows].join("\n");
}

/** The page of settings with its table as it must be. */
export const withSettings = (page: string) => withTable(page, "settings", settingsTable());

if (import.meta.main) await writeFile(path, withSettings(await readFile(path, "utf8")));
