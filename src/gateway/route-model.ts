import { AppError } from "../errors.ts";
import { autoModel, type Catalogue, findModel } from "./catalogue.ts";
import type { ChatRequest } from "./chat-request.ts";
import { estimateMessageTokens } from "./count-tokens.ts";
import type { CataloguedModel, ModelType } from "./models-data.ts";
import type { ProviderId } from "./providers/provider.ts";

/** Which model serves a request, and why; shown in `_preprocessing.routing`. */
export type Routing = { requested: string; model: CataloguedModel; reason: string };

/** What `auto` needs to know of a caller: whose models it could call right now. */
export type IsUsable = (provider: ProviderId) => boolean;

const codeSigns =
  /```|\b(function|class|def|import|const|return|async|await|SELECT|INSERT)\b.{0,80}[;{(:]|\b(code|compile|refactor|debug|stack trace|regex|unit test|typescript|javascript|python|rust|sql|bash|api endpoint)\b/i;
const reasoningSigns =
  /\b(prove|proof|theorem|derive|equation|integral|probability|step by step|logic puzzle|deduce|optimi[sz]e|trade-?offs?|how many ways)\b|[∑∫√≤≥≠∀∃]|\d\s*[*/^]\s*\d.{0,80}=/i;
/** Only the end of a long request is looked at: what is asked stands there, and the cost stays bounded. */
const LOOK_AT_CHARACTERS = 8_000;
/** A question of this many tokens gets a model for reasoning. */
const LONG_TASK_TOKENS = 30_000;

/** The type of task that a request is, by its last user message. */
export function classifyTask(request: ChatRequest): { type: ModelType; reason: string } {
  const last = request.messages.findLast((message) => message.role === "user")?.content ?? "";
  const text = last.slice(-LOOK_AT_CHARACTERS);
  if (codeSigns.test(text)) return { type: "coding", reason: "the task is about code" };
  if (reasoningSigns.test(text)) return { type: "reasoning", reason: "the task asks for mathematics or logic" };
  if (estimateMessageTokens(request.messages) > LONG_TASK_TOKENS)
    return { type: "reasoning", reason: "the prompt is long" };
  return { type: "chat", reason: "nothing points to a special task" };
}

/**
 * The model that serves a request: the named one, or for `auto` the cheapest usable one of the task's type whose context
 * fits, else the cheapest usable one of any type.
 * @throws AppError `unknown_model`; `provider_not_configured` when the named model's provider cannot be called.
 */
export function routeModel(catalogue: Catalogue, request: ChatRequest, isUsable: IsUsable): Routing {
  const requested = request.model;
  if (requested !== autoModel) {
    const model = findModel(catalogue, requested, "chat");
    requireUsable(model, isUsable);
    return { requested, model, reason: model.id === requested ? "named" : `alias of ${model.id}` };
  }
  const { type, reason } = classifyTask(request);
  const needed = estimateMessageTokens(request.messages) + (request.maxTokens ?? 0);
  const usable = catalogue.all.filter(
    (model) =>
      model.type !== "embedding" &&
      isUsable(model.provider) &&
      model.contextWindow >= needed &&
      (request.tools === undefined || model.features.includes("tool_use")),
  );
  const model = cheapest(usable.filter((one) => one.type === type)) ?? cheapest(usable);
  if (model === undefined)
    return { requested, model: catalogue.defaultChat, reason: "no usable model has room for it: the default" };
  const fit = model.type === type ? `the cheapest usable ${type} model` : `no usable ${type} model: the cheapest one`;
  return { requested, model, reason: `${reason}; ${fit}` };
}

/** @throws AppError `provider_not_configured` when the model's provider cannot be called. */
export function requireUsable(model: CataloguedModel, isUsable: IsUsable): void {
  if (isUsable(model.provider)) return;
  throw new AppError(
    "provider_not_configured",
    `No key is configured for ${model.provider}, which serves ${model.id}.`,
    {
      param: "model",
      details: { provider: model.provider },
    },
  );
}

function cheapest(models: readonly CataloguedModel[]): CataloguedModel | undefined {
  const cost = ({ price }: CataloguedModel) => price.input * 3 + price.output; // prompts are about three times as long
  let best: CataloguedModel | undefined;
  for (const model of models) if (best === undefined || cost(model) < cost(best)) best = model;
  return best;
}
