import type { Message } from "../../messages.ts";
import { type Asking, type Setting, wordSettings } from "../model.ts";
import type { CompletionRequest } from "../provider.ts";
import { openAiModels } from "./models.ts";

const byId = new Map(openAiModels.map((model) => [model.id, model]));

/**
 * Whether a request asks for what Chat Completions does not have: tools while reasoning (each model's page), a summary of
 * the reasoning, reasoning that goes back, pictures among a tool's results, a file by its URL (guide "File inputs"), metadata
 * without keeping the answer there.
 */
export function needsResponses(request: Asking & Pick<CompletionRequest, "model">): boolean {
  const { metadata, tools, reasoningSummary, messages, canReason } = request;
  const isShown = tools !== undefined || reasoningSummary !== undefined;
  if (metadata !== undefined || (isShown && isReasoning(request))) return true;
  return messages.some((message) => needsItems(message, canReason));
}

function isReasoning({ model, effort }: Pick<CompletionRequest, "model" | "effort">): boolean {
  const when = byId.get(model)?.reasons;
  if (when === undefined || effort === "none") return false;
  return when !== "when-asked" || effort !== undefined;
}

function needsItems(message: Message, canReason = false): boolean {
  if (message.role === "assistant")
    return canReason && message.parts?.some(({ type }) => type === "reasoning") === true;
  if (typeof message.content === "string") return false;
  if (message.role === "tool") return message.content.some(({ type }) => type !== "text");
  return message.content.some((part) => part.type === "file" && !part.url.startsWith("data:"));
}

/** Settings that Chat Completions alone has. */
const ofChats: ReadonlySet<Setting> = new Set<Setting>(["seed", ...wordSettings]);

/** OpenAI's models, with what they take by the interface that a request needs. */
export const offeredModels = openAiModels.map((model) => {
  const { id, settings, efforts } = model;
  const byResponses = settings.filter((setting) => !ofChats.has(setting));
  if (byResponses.length === settings.length) return model;
  const canReason = efforts?.length ? { canReason: true as const } : {};
  const settingsWith = (request: Asking) =>
    needsResponses({ ...request, ...canReason, model: id }) ? byResponses : settings;
  return { ...model, settingsWith };
});
