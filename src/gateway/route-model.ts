import { autoModel, type Catalogue, findModel } from "./catalogue.ts";
import type { ChatRequest } from "./chat-request.ts";
import { estimateMessageTokens } from "./count-tokens.ts";
import type { CataloguedModel, ModelType } from "./models-data.ts";
import type { ProviderId } from "./providers/provider.ts";
import { notConfigured } from "./target.ts";

/** Which model serves a request, and why; shown in `_preprocessing.routing`. */
export type Routing = {
  requested: string;
  model: CataloguedModel;
  reason: string;
  /** Models of the same type that may serve it when the first one fails, in order; only `auto` has them. */
  substitutes: readonly CataloguedModel[];
  /** Models that came before this one and failed, or were not called. */
  skipped?: readonly SkippedModel[];
};
export type SkippedModel = { model: string; provider: ProviderId; reason: string };

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
/** Models that a call goes on to when the one before failed, at most. */
const MAX_SUBSTITUTES = 3;

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
    if (!isUsable(model.provider)) throw notConfigured(model);
    return { requested, model, reason: model.id === requested ? "named" : `alias of ${model.id}`, substitutes: [] };
  }
  const { type, reason } = classifyTask(request);
  const usable = byPrice(catalogue.all.filter((model) => isUsable(model.provider) && canServe(model, request)));
  const fitting = usable.filter((one) => one.type === type);
  const model = fitting[0] ?? usable[0];
  if (model === undefined) {
    const nothing = "no usable model has room for it: the default";
    return { requested, model: catalogue.defaultChat, reason: nothing, substitutes: [] };
  }
  const fit = model.type === type ? `the cheapest usable ${type} model` : `no usable ${type} model: the cheapest one`;
  return { requested, model, reason: `${reason}; ${fit}`, substitutes: toSubstitutes(usable, model) };
}

function canServe(model: CataloguedModel, request: ChatRequest): boolean {
  if (model.type === "embedding") return false;
  if (request.tools !== undefined && !model.features.includes("tool_use")) return false;
  return model.contextWindow >= estimateMessageTokens(request.messages) + (request.maxTokens ?? 0);
}

/** The others of the model's type: first the cheapest of each other provider, for it is mostly the provider that fails. */
function toSubstitutes(usable: readonly CataloguedModel[], model: CataloguedModel): CataloguedModel[] {
  const others = usable.filter((one) => one !== model && one.type === model.type);
  const isFirstElsewhere = (one: CataloguedModel, place: number) =>
    one.provider !== model.provider && others.findIndex(({ provider }) => provider === one.provider) === place;
  const elsewhere = others.filter(isFirstElsewhere);
  return [...elsewhere, ...others.filter((one) => !elsewhere.includes(one))].slice(0, MAX_SUBSTITUTES);
}

/** The cheapest first; prompts are about three times as long as answers. */
function byPrice(models: readonly CataloguedModel[]): CataloguedModel[] {
  const cost = ({ price }: CataloguedModel) => price.input * 3 + price.output;
  return [...models].sort((a, b) => cost(a) - cost(b));
}
