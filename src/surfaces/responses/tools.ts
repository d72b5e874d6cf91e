import { MAX_TOOLS } from "../../gateway/message-schemas.ts";
import type { ChatBody } from "../../gateway/schemas.ts";
import { invalidRequest } from "../../lib/errors.ts";
import { hashDigits } from "../../lib/ids.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";
import { type FileSearch, fileSearchFunction, fileSearchName, toFileSearch } from "./file-search.ts";
import type { InputItem, ResponsesBody } from "./request-schemas.ts";
import type { OwnTool, ResponseTool } from "./tool-schemas.ts";

/** Longest name of a tool that every provider takes. */
const MAX_NAME = 64;
/** The group of the tools that are in none. */
const OWN_GROUP = "functions";

/** Which tool of a request an offered function is. */
export type ToolPlace = { type: OwnTool["type"]; name: string; namespace?: string };
export type FindTool = (offeredName: string) => ToolPlace;

/** The one field of what a model calls a custom tool with. */
const customInput = {
  type: "object",
  properties: { input: { type: "string", description: "The input of the tool, as it is" } },
  required: ["input"],
  additionalProperties: false,
};

/** The name by which a tool of a group is offered to a model. */
export function toOfferedName(name: string, namespace?: string | null): string {
  if (!namespace || namespace === OWN_GROUP) return name;
  const whole = `${namespace}__${name}`;
  const plain = whole.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  if (plain === whole && whole.length <= MAX_NAME) return whole;
  const hash = hashDigits(whole);
  return `${plain.slice(0, MAX_NAME - hash.length - 1)}_${hash}`;
}

/** The functions that a request offers to the model, and where in it the tools stand that are not run here. */
export function toFunctions(tools: readonly PlacedTool[], ignored: string[]) {
  const functions: NonNullable<ChatBody["tools"]> = [];
  for (const { tool, place, namespace } of tools) {
    if (tool.type === "other") ignored.push(place);
    else if (tool.type === "file_search") functions.push(fileSearchFunction);
    else functions.push({ type: "function", function: toFunction(tool, namespace) });
  }
  if (functions.length > MAX_TOOLS) throw invalidRequest("tools", `tools has more than ${MAX_TOOLS} functions.`);
  return functions;
}

/** Which tools the functions are that a model calls. */
export function makeFindTool(body: Pick<ResponsesBody, "tools" | "input">): FindTool {
  let places: Map<string, ToolPlace> | undefined; // most responses call none
  return (name) => {
    places ??= toPlaces(body);
    return places.get(name) ?? { type: "function", name };
  };
}

function toPlaces(body: Pick<ResponsesBody, "tools" | "input">): Map<string, ToolPlace> {
  const places = new Map<string, ToolPlace>();
  for (const { tool, namespace } of allTools(body)) {
    if (tool.type === "other" || tool.type === "file_search") continue;
    const { type, name } = tool;
    places.set(toOfferedName(name, namespace), { type, name, ...(namespace === undefined ? {} : { namespace }) });
  }
  return places;
}

/** What a custom tool is called with, of the JSON that a model writes. */
export function toCustomInput(json: string): string {
  const parsed = tryParseJson(json);
  const isWrapped = typeof parsed === "object" && parsed !== null && "input" in parsed;
  return isWrapped && typeof parsed.input === "string" ? parsed.input : json;
}

/**
 * What a request lets the response search.
 * @throws AppError `invalid_request` for a second search, and for a function of its name.
 */
export function findFileSearch(tools: readonly PlacedTool[]): FileSearch | undefined {
  let found: FileSearch | undefined;
  let namesake: string | undefined;
  for (const { tool, place, namespace } of tools) {
    if (tool.type === "file_search") {
      if (found) throw invalidRequest(place, `${place}: a request has one file_search; name several stores in it.`);
      found = toFileSearch(tool, place);
    } else if (tool.type !== "other" && toOfferedName(tool.name, namespace) === fileSearchName) namesake = place;
  }
  if (found && namesake) throw invalidRequest(namesake, `${namesake}: file_search is the name of another tool here.`);
  return found;
}

type AnyTool = OwnTool | Extract<ResponseTool, { type: "other" | "file_search" }>;
type PlacedTool = { tool: AnyTool; place: string; namespace?: string };

/** All tools of a request, those of groups and those that stand in its input too. */
export function allTools({ tools, input }: Pick<ResponsesBody, "tools" | "input">): PlacedTool[] {
  const all = tools ? inGroups(tools, "tools") : [];
  if (typeof input === "string") return all;
  for (const [place, item] of input.entries())
    if (item.type === "additional_tools") all.push(...inGroups(item.tools, `input[${place}].tools`));
  return all;
}

const inGroups = (tools: readonly ResponseTool[], at: string): PlacedTool[] =>
  tools.flatMap((tool, n): PlacedTool[] => {
    const place = `${at}[${n}]`;
    if (tool.type !== "namespace") return [{ tool, place }];
    return tool.tools.map((inner, m) => ({ tool: inner, place: `${place}.tools[${m}]`, namespace: tool.name }));
  });

function toFunction(tool: OwnTool, namespace: string | undefined) {
  const name = toOfferedName(tool.name, namespace);
  if (tool.type === "function") return { name, description: tool.description, parameters: tool.parameters };
  const { description, format } = tool;
  const grammar =
    format?.type === "grammar" ? `The input has this ${format.syntax} grammar:\n${format.definition}` : "";
  const parts = [description, grammar].filter((part) => part);
  return { name, description: parts.join("\n\n"), parameters: customInput };
}

type CalledItem = Extract<InputItem, { type: "function_call" | "custom_tool_call" }>;

/** A call of an earlier turn, by the name that the model knows. */
export function toToolCall(item: CalledItem) {
  const { call_id: id, name, namespace } = item;
  const json = item.type === "function_call" ? item.arguments : JSON.stringify({ input: item.input });
  return { type: "tool-call" as const, id, name: toOfferedName(name, namespace), arguments: json };
}
