import { readFile, writeFile } from "node:fs/promises";
import { type CataloguedModel, makeCatalogue, temperaturesOf } from "../src/gateway/catalogue.ts";
import { settingFields } from "../src/gateway/providers/model.ts";
import { withTable } from "./readme-tables.ts";

const path = new URL("../docs/models.md", import.meta.url);

/** A column of the table, and its cell for a model. */
const columns: Readonly<Record<string, (model: CataloguedModel) => string>> = {
  model: ({ id }) => `\`${id}\``,
  pictures: has("vision"),
  files: has("files"),
  tools: has("tool_use"),
  "demanded tools": has("tool_choice"),
  "tools while reasoning": ({ features, efforts = [] }) =>
    mark(features.includes("tool_use") && efforts.some((effort) => effort !== "none")),
  "JSON schema": has("json_schema"),
  "any JSON": has("json_object"),
  efforts: ({ efforts = [] }) => efforts.join(", "),
  temperature: ({ maxTemperature }) => {
    const { min, max } = temperaturesOf(maxTemperature);
    return min === max ? `${max}` : `${min} to ${max}`;
  },
  "prompt cache": has("prompt_caching"),
  "other settings": ({ settings }) => settings.map((setting) => settingFields[setting]).join(", "),
};

function has(feature: CataloguedModel["features"][number]) {
  return ({ features }: CataloguedModel) => mark(features.includes(feature));
}

const mark = (isTaken: boolean) => (isTaken ? "yes" : "");

/** What each model takes, made from the tables of the providers. A server of the operator's is any that is set. */
function modelsTable(): string {
  const edge = { apiKey: undefined, embeddingModel: undefined };
  const { all, defaultChat } = makeCatalogue({ ...edge, baseUrl: "http://edge", model: "a server at EDGE_BASE_URL" });
  const offline = makeCatalogue({ ...edge, baseUrl: undefined, model: "" }).defaultChat;
  const chats = all.filter((model) => model.type !== "embedding" && model !== defaultChat);
  const rows = [offline, defaultChat, ...chats].map((model) => Object.values(columns).map((cell) => cell(model)));
  const names = Object.keys(columns);
  return [names, names.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** The page of models with its table as it must be. */
export const withModels = (page: string) => withTable(page, "models", modelsTable());

if (import.meta.main) await writeFile(path, withModels(await readFile(path, "utf8")));
