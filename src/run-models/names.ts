import { patternIds } from "../composite/patterns.ts";
import { isRegulated, type ProfileId, profileIds } from "../composite/profiles.ts";
import { COMPOSITE } from "../gateway/run-model-names.ts";
import { AppError } from "../lib/errors.ts";

/** The profile of a pattern that is named without one: it is of no field of work. */
const DEFAULT_PROFILE: ProfileId = "content";

/** The pattern and the profile of `composite:<pattern>[:<profile>]`. @throws AppError `unknown_model`. */
export function parseComposite(model: string) {
  const [name, as = DEFAULT_PROFILE, ...rest] = model.slice(COMPOSITE.length).split(":");
  const pattern = patternIds.find((id) => id === name);
  const profile = profileIds.find((id) => id === as);
  if (pattern && profile && rest.length === 0) return { pattern, profile };
  const hint = `The patterns: ${patternIds.join(", ")}. The profiles: ${profileIds.join(", ")}.`;
  throw unknownRunModel(model, hint);
}

/** Whether a model stands for runs of a regulated profile, of whose texts nothing but the result is kept. */
export const isRegulatedModel = (model: string) =>
  model.startsWith(COMPOSITE) && isRegulated(parseComposite(model).profile);

export function unknownRunModel(model: string, hint: string): AppError {
  const message = `There is no model ${JSON.stringify(model.slice(0, 100))}. ${hint}`;
  return new AppError("unknown_model", message, { param: "model" });
}
