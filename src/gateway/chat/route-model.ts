import { invalidRequest } from "../../lib/errors.ts";
import { type Catalogue, type CataloguedModel, DEFAULT_SAMPLING, temperaturesOf } from "../catalogue.ts";
import { textOf } from "../messages.ts";
import type { ModelType } from "../providers/model.ts";
import { notConfigured } from "../resilience/target.ts";
import { estimateMessageTokens } from "../tokens.ts";
import { findObstacle, maxTemperatureOf, settingMisfits } from "./capabilities.ts";
import type { ChatRequest } from "./request.ts";

/** Which model serves a request, and why; shown in `_preprocessing.routing`. */
export type Routing = {
  requested: string;
  model: CataloguedModel;
  reason: string;
  /** Models to try if the first one fails, in order: for `auto`, models of the same type; otherwise the tenant's fallbacks. */
  fallbacks: readonly CataloguedModel[];
  /** Models that were passed over before this one, because they failed or could not be called. */
  skipped?: readonly SkippedModel[];
};
export type SkippedModel = { model: string; provider: string; reason: string };

/** Whether a caller could call a model right now. */
export type IsUsable = (model: CataloguedModel) => boolean;

const codeSigns =
  /```|\b(function|class|def|import|const|return|async|await|SELECT|INSERT)\b.{0,80}[;{(:]|\b(code|compile|refactor|debug|stack trace|regex|unit test|typescript|javascript|python|rust|sql|bash|api endpoint)\b/i;
const reasoningSigns =
  /\b(prove|proof|theorem|derive|equation|integral|probability|step by step|logic puzzle|deduce|optimi[sz]e|trade-?offs?|how many ways)\b|[∑∫√≤≥≠∀∃]|\d\s*[*/^]\s*\d.{0,80}=/i;
/** Only the end of a long request is classified: the question is there, and the cost stays bounded. */
const LOOK_AT_CHARACTERS = 8_000;
/** From this many tokens on, a question gets a model for reasoning. */
const LONG_TASK_TOKENS = 30_000;
/** Maximum fallbacks of one call. */
const MAX_FALLBACKS = 3;

/** The type of task that a request is, by its last user message. */
export function classifyTask(request: ChatRequest): { type: ModelType; reason: string } {
  const last = textOf(request.messages.findLast((message) => message.role === "user")?.content ?? "");
  const text = last.slice(-LOOK_AT_CHARACTERS);
  if (codeSigns.test(text)) return { type: "coding", reason: "the task is about code" };
  if (reasoningSigns.test(text)) return { type: "reasoning", reason: "the task asks for mathematics or logic" };
  if (estimateMessageTokens(request.messages) > LONG_TASK_TOKENS)
    return { type: "reasoning", reason: "the prompt is long" };
  return { type: "chat", reason: "nothing points to a special task" };
}

/**
 * Serves a request by the model that it names; `fallbacks` are what the tenant wants in its place when it fails.
 * @throws AppError `provider_not_configured` when the model's provider cannot be called; `invalid_request` when the model
 * does not take what is asked.
 */
export function routeNamed(
  model: CataloguedModel,
  fallbacks: readonly CataloguedModel[],
  request: ChatRequest,
  isUsable: IsUsable,
): Routing {
  if (!isUsable(model)) throw notConfigured(model);
  requireServable(model, request);
  return {
    requested: request.model,
    model,
    reason: model.id === request.model ? "named" : `alias of ${model.id}`,
    fallbacks: fallbacks.filter((one) => isUsable(one) && fits(one, request)),
  };
}

/**
 * Serves a request for `auto` by the cheapest usable model of the task's type that takes it and whose context fits, else
 * the cheapest such one of any type. Those that take all of its settings go first.
 */
export function routeAuto(catalogue: Catalogue, request: ChatRequest, isUsable: IsUsable): Routing {
  const requested = request.model;
  const { type, reason } = classifyTask(request);
  const tokens = estimateMessageTokens(request.messages) + (request.maxTokens ?? 0);
  const able = catalogue.chatByPrice.filter(
    (model) => isUsable(model) && model.contextWindow >= tokens && fits(model, request),
  );
  const { promptCacheKey: _hint, ...asked } = request; // this alone is no reason to skip a model
  const exact = able.filter((model) => settingMisfits(model, asked).length === 0);
  const usable = withoutStub(exact.length > 0 ? exact : able);
  const fitting = usable.filter((one) => one.type === type);
  const model = fitting[0] ?? usable[0];
  if (model === undefined) {
    const nothing = "no usable model has room for it: the default";
    return { requested, model: catalogue.defaultChat, reason: nothing, fallbacks: [] };
  }
  const fit = model.type === type ? `the cheapest usable ${type} model` : `no usable ${type} model: the cheapest one`;
  return { requested, model, reason: `${reason}; ${fit}`, fallbacks: toFallbacks(usable, model) };
}

/** Removes the stub, unless there is no other model. */
export function withoutStub(models: readonly CataloguedModel[]): readonly CataloguedModel[] {
  const real = models.filter(({ isStub }) => isStub !== true);
  return real.length > 0 ? real : models;
}

/** A setting that a model does not take as it was asked for, and the value that is used instead. */
type Misfit = { param: "temperature" | "top_p"; used: number };

/** The sampling settings of a request that a model does not take. */
export function misfitsOf(model: CataloguedModel, request: ChatRequest): Misfit[] {
  const maxTemperature = maxTemperatureOf(model, request);
  const asked = { temperature: request.temperature ?? DEFAULT_SAMPLING, top_p: request.topP ?? DEFAULT_SAMPLING };
  if (maxTemperature !== undefined)
    return asked.temperature > maxTemperature ? [{ param: "temperature", used: maxTemperature }] : [];
  const params = ["temperature", "top_p"] as const;
  return params
    .filter((param) => asked[param] !== DEFAULT_SAMPLING)
    .map((param) => ({ param, used: DEFAULT_SAMPLING }));
}

const fits = (model: CataloguedModel, request: ChatRequest) =>
  findObstacle(model, request) === undefined && misfitsOf(model, request).length === 0;

/** A provider would reject it too, later and less clearly. Sampling settings are adjusted unless the caller is strict. */
function requireServable(model: CataloguedModel, request: ChatRequest): void {
  const [misfit] = request.options?.strict === true ? misfitsOf(model, request) : [];
  if (misfit !== undefined) {
    const { min, max } = temperaturesOf(maxTemperatureOf(model, request));
    const range = min === max ? `no ${misfit.param} but its default, ${max}` : `a temperature from ${min} to ${max}`;
    throw invalidRequest(misfit.param, `${model.id} takes ${range}.`);
  }
  const [foreign] = request.options?.strict === true ? settingMisfits(model, request) : [];
  if (foreign !== undefined) throw invalidRequest(foreign.param, `${model.id} takes ${foreign.takes}.`);
  const obstacle = findObstacle(model, request);
  if (obstacle !== undefined) throw invalidRequest(obstacle.param, obstacle.message);
}

/**
 * Other models of the same type. The cheapest of each other provider comes first, since most failures concern a whole provider.
 */
function toFallbacks(usable: readonly CataloguedModel[], model: CataloguedModel): CataloguedModel[] {
  const others = usable.filter((one) => one !== model && one.type === model.type);
  const isFirstElsewhere = (one: CataloguedModel, place: number) =>
    one.provider !== model.provider && others.findIndex(({ provider }) => provider === one.provider) === place;
  const elsewhere = others.filter(isFirstElsewhere);
  return [...elsewhere, ...others.filter((one) => !elsewhere.includes(one))].slice(0, MAX_FALLBACKS);
}
