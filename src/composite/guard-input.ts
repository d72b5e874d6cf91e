import { type GuardKind, inspect } from "../guards/guard.ts";
import type { GuardCount } from "../guards/rules.ts";
import { addCounts } from "../guards/rules.ts";
import { AppError } from "../lib/errors.ts";
import { noteRefused } from "../net/call-scope.ts";
import { type ProfileId, profiles } from "./profiles.ts";
import type { CompositeInput } from "./schemas.ts";

/** A parameter, so that a test can make it fail. */
type Inspect = typeof inspect;

/** What a caller gives to a run. */
type GuardedInput = Pick<CompositeInput, "profile" | "input" | "models"> & {
  callback?: { url: string } | null | undefined;
};

/**
 * The compliance guard: refuses an input that holds what its profile must not let through. It comes before everything else
 * that is done with an input: before it is stored, hashed, logged or sent. A guard that fails lets nothing through.
 * @throws AppError `compliance_blocked`, its details naming kinds and positions (UTF-16 units), never values; `unavailable`.
 */
export function guardInput({ profile, input, models, callback }: GuardedInput, find: Inspect = inspect): void {
  const named = (models ?? []).map((id, at) => [`models[${at}]`, id] as const);
  const address = !callback ? {} : { "callback.url": callback.url };
  guardTexts(profile, { input, ...Object.fromEntries(named), ...address }, find);
}

/** The same for texts by the names of their fields. */
export function guardTexts(profile: ProfileId, texts: Readonly<Record<string, string>>, find: Inspect = inspect): void {
  const { guards, name } = profiles[profile];
  if (guards.length === 0) return;
  const findings = inspectFields(texts, guards, find);
  const [first] = findings;
  if (!first) return;
  const counts: GuardCount[] = [];
  for (const { kind } of findings) addCounts(counts, [{ kind, place: "input", action: "block", count: 1 }]);
  noteRefused(counts);
  const kinds = [...new Set(findings.map(({ kind }) => kind))];
  const words = kinds.join(", ").replaceAll("_", " ");
  const message = `The profile ${name} does not take inputs with ${words}. Nothing of it was kept, and no model was asked.`;
  throw new AppError("compliance_blocked", message, { param: first.field, details: { profile, kinds, findings } });
}

function inspectFields(fields: Readonly<Record<string, string>>, kinds: readonly GuardKind[], find: Inspect) {
  try {
    return Object.entries(fields).flatMap(([field, text]) =>
      find(text, kinds).map((finding) => ({ field, ...finding })),
    );
  } catch {
    // The cause is left out on purpose: its message could quote the input.
    throw new AppError("unavailable", "The compliance guard is not available right now; nothing was processed.", {
      retryable: true,
      retryAfterMs: 2_000,
    });
  }
}
