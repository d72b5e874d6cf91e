import type { z } from "zod";
import type { Config } from "../src/config.ts";
import { AppError } from "../src/errors.ts";
import type { ApiContext } from "./context.ts";
import { hasBody, type JsonLimit, mediaType, readJsonBody } from "./middleware/body.ts";
import type { BodyBudget } from "./middleware/body-budget.ts";
import { type KeepFile, readMultipartBody } from "./middleware/multipart.ts";
import { toPlainWords } from "./middleware/plain-words.ts";
import { formatPath, knownFields, parseInput, toSentence } from "./middleware/validate.ts";
import type { AnyRoute, BodyLimit, HandlerInput } from "./route.ts";

/** Largest body of a tool call, in bytes: a text of 200,000 characters fits, each of them escaped. */
const MAX_TOOLS_BYTES = 2 << 20;
/** Largest body of what sets or makes something small, in bytes: the largest, 50 models of a custom provider, has a fifth. */
const MAX_SETTINGS_BYTES = 256 << 10;
/** Most unknown fields that one response lists. */
const MAX_IGNORED = 20;
/** Most names of whatever is ignored that one response lists: clients bound the size of headers. */
const MAX_NOTED = 50;

export type Input = Pick<HandlerInput, "params" | "query" | "body" | "bytes">;

export type InputReader = ReturnType<typeof makeInputReader>;

/**
 * Reads and validates what a route declares, and names in `x-svc-ignored` what it does not know; `maxBytes` bounds a JSON
 * body further than the route does.
 */
export function makeInputReader(
  limits: Config["limits"],
  route: AnyRoute,
  {
    reserveForBody,
    keepFileOf,
  }: Pick<BodyBudget, "reserveForBody"> & { keepFileOf(ctx: ApiContext): KeepFile | undefined },
) {
  const routeLimit = bodyLimits(limits)[route.bodyLimit ?? "json"];
  const knownQuery = route.query ? knownFields(route.query) : new Set<string>();
  const knownBody = knownFields(route.body);
  const knownForm = knownFields(route.multipart);

  return async function readInput(ctx: ApiContext, maxBytes: number): Promise<Input> {
    const limit = routeLimit.bytes <= maxBytes ? routeLimit : { bytes: maxBytes };
    const params = route.params ? parseParams(route.params, ctx) : undefined;
    let ignored = ctx.querystring === "" ? [] : unknownIn(ctx.query, knownQuery);
    const query = route.query ? parseInput(route.query, ctx.query, "query") : undefined;
    let body: unknown;
    const kept: { bytes?: Buffer } | undefined = route.documentedBody && {};
    if (route.multipart && mediaType(ctx) === "multipart/form-data") {
      const most = route.keepsFile?.maxBytes ?? limits.sourceBytes;
      await reserveForBody(ctx, most, { isKept: route.keepsFile !== undefined });
      const form = await readMultipartBody(ctx, most, keepFileOf(ctx));
      ignored = [...ignored, ...unknownIn(form, knownForm)];
      body = parseInput(route.multipart, form, "body");
    } else if (route.body) {
      const turn = reserveForBody(ctx, limit.bytes);
      if (turn !== undefined) await turn; // that of a small body is at once
      const isAbsent = route.isBodyOptional === true && !hasBody(ctx.req);
      const json = isAbsent ? {} : await readJsonBody(ctx, limit, kept);
      ignored = [...ignored, ...unknownIn(json, knownBody)];
      body = parseInput(route.body, json, "body");
    }
    if (ignored.length > 0) {
      const named = ignored.slice(0, MAX_IGNORED);
      noteIgnored(ctx, named, named.map(toHeaderText));
    }
    return kept === undefined ? { params, query, body } : { params, query, body, ...kept };
  };
}

/** The limits of JSON bodies: in bytes, and the setting that raises them. */
function bodyLimits({ jsonBytes, contentBytes }: Config["limits"]): Record<BodyLimit, JsonLimit> {
  const fixed = (bytes: number) => (bytes < jsonBytes ? { bytes } : json);
  const json = { bytes: jsonBytes, setting: "MAX_JSON_BYTES" };
  return {
    json,
    content: { bytes: contentBytes, setting: "MAX_CONTENT_BYTES" },
    tools: fixed(MAX_TOOLS_BYTES),
    settings: fixed(MAX_SETTINGS_BYTES),
  };
}

/** Parameters of the path. */
function parseParams(schema: z.ZodType, ctx: ApiContext): unknown {
  const result = schema.safeParse(ctx.params, { error: toPlainWords });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const problem = toSentence(formatPath(issue?.path ?? []), issue?.message ?? "is not valid");
  throw new AppError("not_found", `There is nothing at this path: ${problem}`);
}

/** The first fields of a value that a schema does not know; `known` is what `knownFields` gives for it. */
export function unknownIn(value: unknown, known: Set<string> | undefined): string[] {
  if (known === undefined || typeof value !== "object" || value === null || Array.isArray(value)) return [];
  return Object.keys(value)
    .filter((name) => !known.has(name))
    .slice(0, MAX_IGNORED);
}

/**
 * A body, which its route has taken as it came, by the schema by which it is understood. `unreadIn` gives the names of what is
 * not read of one that fits.
 * @throws AppError `invalid_request`.
 */
export function parseBody<S extends z.ZodType, B>(
  schema: S,
  { body, ignore }: Pick<HandlerInput<unknown, unknown, B>, "body" | "ignore">,
  unreadIn: (body: B) => string[],
): z.output<S> {
  const parsed = parseInput(schema, body, "body") as z.output<S>; // what the schema has given
  for (const name of unreadIn(body).slice(0, MAX_IGNORED)) ignore(toHeaderText(name));
  return parsed;
}

/** Names in `x-svc-ignored` what of a request is not used; `shown` is how the header writes it. */
export function noteIgnored({ state }: ApiContext, names: readonly string[], shown = names): void {
  if ((state.ignored?.length ?? 0) >= MAX_NOTED) return;
  state.ignored = [...(state.ignored ?? []), ...names];
  const before = state.headers["x-svc-ignored"];
  state.headers["x-svc-ignored"] = [...(before === undefined ? [] : [before]), ...shown].join(", ");
}

/** A client's text made safe for a header. */
function toHeaderText(name: string): string {
  return encodeURIComponent(name.slice(0, 64).toWellFormed());
}
