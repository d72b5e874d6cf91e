import type { CataloguedModel } from "../catalogue.ts";
import type { Message } from "../messages.ts";
import { type Asking, type Effort, efforts, type Setting, settingFields } from "../providers/model.ts";
import type { Sampling } from "../providers/provider.ts";
import type { ChatRequest } from "./request.ts";

const settingNames = Object.keys(settingFields) as Setting[]; // the literal has no other keys

/** Why a model cannot serve a request, apart from its size; undefined if it can. */
export function findObstacle(
  { id, features }: CataloguedModel,
  { tools, toolChoice, responseFormat, messages }: ChatRequest,
): { param: string; message: string } | undefined {
  if (tools !== undefined && !features.includes("tool_use"))
    return { param: "tools", message: `${id} takes no tools here.` };
  const isDemanded = typeof toolChoice === "object" || toolChoice === "required";
  if (isDemanded && !features.includes("tool_choice"))
    return {
      param: "tool_choice",
      message: `${id} decides by itself whether it calls a tool: it takes auto and none.`,
    };
  if (responseFormat !== undefined && !features.includes(formatFeature(responseFormat)))
    return { param: "response_format", message: `${id} takes no response format of this type.` };
  return findForeignPart({ id, features }, messages);
}

const formatFeature = ({ type }: Record<string, unknown>) => (type === "json_object" ? "json_object" : "json_schema");

const partKinds = {
  image: { feature: "vision", name: "pictures" },
  file: { feature: "files", name: "files" },
} as const;

/** Finds the first part in the messages that a model cannot read: its path and a message. */
function findForeignPart({ id, features }: Pick<CataloguedModel, "id" | "features">, messages: readonly Message[]) {
  if (features.includes("vision") && features.includes("files")) return undefined;
  for (const [place, { content }] of messages.entries()) {
    if (typeof content === "string") continue;
    for (const [at, { type }] of content.entries()) {
      if (type === "text" || features.includes(partKinds[type].feature)) continue;
      return { param: `messages[${place}].content[${at}]`, message: `${id} takes no ${partKinds[type].name}.` };
    }
  }
  return undefined;
}

/** A setting that a model does not take as requested, the effort used instead, and the efforts that it takes. */
type SettingMisfit = { param: string; used?: Effort; takes: string };

/** The settings of a request that a model does not take, other than those of its sampling. */
export function settingMisfits(model: CataloguedModel, request: ChatRequest): SettingMisfit[] {
  const misfits: SettingMisfit[] = [];
  for (const setting of settingNames) {
    const param = settingFields[setting];
    if (isForeign(model, setting, request, request)) misfits.push({ param, takes: `no ${param}` });
  }
  const used = nearestEffort(model, request.effort);
  if (used === request.effort) return misfits;
  const param = "reasoning_effort";
  if (used === undefined) return [...misfits, { param, takes: `no ${param}` }];
  return [...misfits, { param, used, takes: `a ${param} of ${model.efforts?.join(", ")}` }];
}

/** Whether a request has any of the settings that a model may not take, other than those of its sampling. */
export const hasSettings = (request: Sampling) =>
  request.effort !== undefined || settingNames.some((setting) => request[setting] !== undefined);

/** Removes settings that a model does not take, and replaces an effort that it does not take by the nearest one. */
export function keepToSettings(model: CataloguedModel, request: Sampling, asked: Asking): void {
  for (const setting of settingNames) if (isForeign(model, setting, request, asked)) delete request[setting];
  if (request.effort === undefined) return;
  const effort = nearestEffort(model, request.effort);
  if (effort !== undefined) request.effort = effort;
  else delete request.effort;
}

function isForeign(
  { settings, settingsWith, flex }: CataloguedModel,
  setting: Setting,
  request: Sampling,
  asked: Asking,
): boolean {
  if (request[setting] === undefined) return false;
  if (!(settingsWith?.(asked) ?? settings).includes(setting)) return true;
  if (setting !== "serviceTier" || request.serviceTier === "auto" || request.serviceTier === "default") return false;
  return request.serviceTier !== "flex" || flex !== true;
}

/** The highest temperature that a model takes with a request; undefined if it takes only its default, as while it reasons. */
export function maxTemperatureOf(model: CataloguedModel, request: Sampling): number | undefined {
  const effort = nearestEffort(model, request.effort);
  const isToReason = model.reasons !== undefined && effort !== undefined && effort !== "none";
  return isToReason ? undefined : model.maxTemperature;
}

/** The effort itself, else the next lower one that the model takes, else its lowest; undefined if it takes none. */
function nearestEffort({ efforts: taken = [] }: CataloguedModel, effort: Effort | undefined): Effort | undefined {
  if (effort === undefined || taken.includes(effort)) return effort;
  const rank = efforts.indexOf(effort);
  return taken.findLast((one) => efforts.indexOf(one) < rank) ?? taken[0];
}
