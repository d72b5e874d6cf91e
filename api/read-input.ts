import { z } from "zod";
import type { Config } from "../src/config/config.ts";
import { defined } from "../src/lib/defined.ts";
import { AppError } from "../src/lib/errors.ts";
import { toPlainWords, toSentence } from "../src/lib/issue-messages.ts";
import type { ApiContext } from "./context.ts";
import { hasBody, type JsonLimit, mediaType, readJsonBody } from "./middleware/body.ts";
import type { BodyBudget } from "./middleware/body-budget.ts";
import { type KeepFile, readMultipartBody } from "./middleware/multipart.ts";
import { formatPath, parseInput, type ReadInput, readInput as readPart } from "./middleware/validate.ts";
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
  const routeLimit = {
    ...bodyLimits(limits)[route.bodyLimit ?? "json"],
    ...defined({ keepsDigits: route.keepsDigits }),
  };
  const querySchema = route.query ?? z.object({});

  return async function readInput(ctx: ApiContext, maxBytes: number): Promise<Input> {
    const limit = routeLimit.bytes <= maxBytes ? routeLimit : { bytes: maxBytes };
    const params = route.params ? parseParams(route.params, ctx) : undefined;
    const asked = route.query || ctx.querystring !== "" ? readPart(querySchema, { ...ctx.query }, "query") : undefined;
    let given: ReadInput | undefined;
    const kept: { bytes?: Buffer } | undefined = route.documentedBody && {};
    if (route.multipart && mediaType(ctx) === "multipart/form-data") {
      const ofDocument = { bytes: limits.sourceBytes, setting: "MAX_SOURCE_BYTES" };
      const most = route.keepsFile ? { bytes: route.keepsFile.maxBytes } : ofDocument;
      await reserveForBody(ctx, most.bytes, { isKept: route.keepsFile !== undefined });
      given = readPart(route.multipart, await readMultipartBody(ctx, most, keepFileOf(ctx)), "body");
    } else if (route.body) {
      await reserveForBody(ctx, limit.bytes);
      const isAbsent = route.isBodyOptional === true && !hasBody(ctx.req);
      const json = isAbsent ? {} : await readJsonBody(ctx, limit, kept);
      given = readPart(route.body, json, "body");
    }
    const ignored = [...(asked?.ignored ?? []), ...(given?.ignored ?? [])].slice(0, MAX_IGNORED);
    if (ignored.length > 0) {
      noteIgnored(
        ctx,
        ignored.map((path) => ({ name: formatPath(path), shown: formatPath(path, toHeaderText) })),
      );
    }
    const query = route.query && asked?.data;
    const body = given?.data;
    return kept === undefined ? { params, query, body } : { params, query, body, ...kept };
  };
}

/** The limits of JSON bodies: in bytes, and the setting that raises them. */
function bodyLimits({ jsonBytes, contentBytes }: Config["limits"]): Record<BodyLimit, JsonLimit> {
  const fixed = (bytes: number) => (bytes < jsonBytes ? { bytes } : json);
  const json = { bytes: jsonBytes, setting: "MAX_JSON_BYTES" };
  return {
    json,
    content: { bytes: contentBytes, setting: "5 times MAX_JSON_BYTES" },
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

/** What of a request is not used: its name, and how a header writes it. */
type Ignored = { name: string; shown: string };

/** Names in `x-svc-ignored` what of a request is not used. What is ignored as a whole stands for all that is in it. */
export function noteIgnored({ state }: ApiContext, given: readonly Ignored[]): void {
  const before = state.ignored ?? [];
  if (before.length >= MAX_NOTED) return;
  const isIn = ({ name }: Ignored) =>
    given.some((whole) => name !== whole.name && /^[.[]/.test(restAfter(name, whole.name)));
  state.ignored = [...before.filter((one) => !isIn(one)), ...given];
  state.headers["x-svc-ignored"] = state.ignored.map(({ shown }) => shown).join(", ");
}

const restAfter = (name: string, start: string) => (name.startsWith(start) ? name.slice(start.length) : "");

/** A client's text made safe for a header. */
function toHeaderText(name: PropertyKey): string {
  return encodeURIComponent(String(name).slice(0, 64).toWellFormed());
}
