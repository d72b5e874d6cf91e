import { AppError } from "./errors.ts";

/** Most bytes of an agent's or a workflow's definition, as JSON: each run keeps a copy of it. */
const MAX_DEFINITION_BYTES = 256 * 1_024;
/** Longest description that a list shows, in characters. */
const MAX_SHOWN_DESCRIPTION = 300;

/** @throws AppError `invalid_request` for a definition that is larger than 256 KiB; `param` names the field to shorten. */
export function checkDefinitionSize(definition: object, param: string): void {
  const bytes = Buffer.byteLength(JSON.stringify(definition));
  if (bytes <= MAX_DEFINITION_BYTES) return;
  const message = `The definition has ${bytes} bytes as JSON; ${MAX_DEFINITION_BYTES} is the most.`;
  throw new AppError("invalid_request", message, { param });
}

/** A description as lists show it, at most 300 characters and a mark that it was cut. */
export function shortDescription(text: string): string {
  if (text.length <= MAX_SHOWN_DESCRIPTION) return text;
  const cut = text.slice(0, MAX_SHOWN_DESCRIPTION);
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)}…`; // not half a surrogate pair
}
