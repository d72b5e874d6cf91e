import { z } from "zod";
import { defined } from "../src/lib/defined.ts";
import { type ErrorCode, errorCodes, errorTypes } from "../src/lib/errors.ts";
import { type JsonSchema, toJsonSchema } from "../src/lib/json-schema.ts";
import { toStatus } from "./middleware/errors.ts";
import { apiVersion } from "./middleware/request-id.ts";
import { acceptedSchema } from "./prefer.ts";
import { type AnyRoute, type ResponseDeclaration, takesIdempotencyKey } from "./route.ts";
import { type Components, makeComponents, named } from "./schema-names.ts";

export type Operation = {
  operationId: string;
  summary: string;
  description?: string;
  tags: readonly string[];
  security?: JsonSchema[];
  parameters?: JsonSchema[];
  requestBody?: JsonSchema;
  responses: Record<string, JsonSchema>;
};
export type OpenApiDocument = {
  openapi: string;
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, Operation>>;
} & JsonSchema;

/** The body of every error. */
export const errorBodySchema = named(
  "Error",
  z.object({
    error: z.object({
      type: z.enum(errorTypes),
      code: z.enum(Object.keys(errorCodes)).describe("Stable; switch on this"),
      message: z.string().describe("For people; may change"),
      param: z.string().optional().describe("Path of the field that is wrong, as `messages[0].role`"),
      details: z.unknown().optional(),
      requestId: z.string(),
    }),
  }),
);

/** The id of a request in examples. */
const SAMPLE_ID = "req_01J0000000000000000000000";

const description = `Every response carries \`x-request-id\`. Fields that an endpoint does not know are refused where they may grant or limit something; elsewhere they are ignored and named in \`x-svc-ignored\`.
Errors have one shape (\`Error\`). Calls are limited per tenant: see \`RateLimit\` and, on 429, \`Retry-After\`.`;

/** The OpenAPI 3.1 document of the declared routes, as work for `inSlices`: it takes some 100 ms. */
export function* makeOpenApi(routes: readonly AnyRoute[]): Generator<void, OpenApiDocument> {
  const paths: OpenApiDocument["paths"] = {};
  const components = makeComponents();
  components.refer(errorBodySchema, "output");
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method]: toOperation(route, components) };
    yield;
  }
  return {
    openapi: "3.1.0",
    info: { title: "Switchyard", version: apiVersion, description },
    servers: [{ url: "/" }],
    tags: [...new Set(routes.flatMap((route) => route.tags))].map((name) => ({ name })),
    security: [{ apiKey: [] }, { session: [] }],
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "An API key, `sk_…`; `x-api-key` takes it too" },
        session: { type: "apiKey", in: "cookie", name: "switchyard", description: "A session of `POST /session`" },
        operator: { type: "http", scheme: "basic", description: "`ADMIN_TOKEN` as password, or as bearer" },
        operatorSession: {
          type: "apiKey",
          in: "cookie",
          name: "switchyard-operator",
          description: "A session of `POST /operator/session`",
        },
      },
      schemas: components.schemas,
    },
  };
}

function toOperation(route: AnyRoute, components: Components): Operation {
  const parameters = toParameters(route);
  const requestBody = toRequestBody(route, components);
  return {
    operationId: toOperationId(route),
    summary: route.summary,
    ...defined({ description: route.description }),
    tags: route.tags,
    ...(route.auth === "public" ? { security: [] } : {}),
    ...(route.auth === "operator" ? { security: [{ operator: [] }, { operatorSession: [] }] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...defined({ requestBody }),
    responses: { ...toResponses(route, components), ...toErrorResponses(route, components) },
  };
}

/** As `getJobsById`. */
function toOperationId(route: AnyRoute): string {
  const words = route.path.split(/[/_.-]/).filter((word) => word !== "");
  const named = words.map((word) => (word.startsWith(":") ? `By${capital(word.slice(1))}` : capital(word)));
  return `${route.method}${named.join("")}`;
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function toParameters(route: AnyRoute): JsonSchema[] {
  const headers: Record<string, string> = { ...route.headers };
  if (route.isAsync) headers.Prefer = "`wait=SECONDS` (at most 120, default 30) or `respond-async`";
  if (takesIdempotencyKey(route)) {
    headers["Idempotency-Key"] = "1 to 255 characters, kept for 24 hours: a repeat gets the first response";
  }
  return [
    ...fieldParameters(route.params, "path"),
    ...fieldParameters(route.query, "query"),
    ...Object.entries(headers).map(([name, about]) => ({
      name,
      in: "header",
      description: about,
      schema: { type: "string" },
    })),
  ];
}

function fieldParameters(schema: z.ZodType | undefined, place: "path" | "query"): JsonSchema[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = toJsonSchema(schema, "input") as {
    properties?: Record<string, JsonSchema>; // parameters are always declared as an object schema
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description: about, ...field }]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    ...defined({ description: about }),
    schema: field,
  }));
}

function toRequestBody(route: AnyRoute, components: Components): JsonSchema | undefined {
  const content: JsonSchema = {};
  const name = `${capital(toOperationId(route))}Request`;
  if (route.body) {
    const schema = components.refer(route.documentedBody ?? route.body, "input", name);
    content["application/json"] = { schema, ...defined({ example: route.example }) };
  }
  if (route.multipart) {
    const formName = route.multipart === route.body ? name : `${name}Form`;
    content["multipart/form-data"] = { schema: components.refer(route.multipart, "input", formName) };
  }
  return Object.keys(content).length === 0 ? undefined : { required: route.isBodyOptional !== true, content };
}

function toResponses(route: AnyRoute, components: Components): Record<string, JsonSchema> {
  const name = `${capital(toOperationId(route))}Response`;
  const accepted = { 202: { description: "The job continues; follow it at `Location`", body: acceptedSchema } };
  const declared: Record<string, ResponseDeclaration> = { ...(route.isAsync ? accepted : {}), ...route.responses };
  return Object.fromEntries(
    Object.entries(declared).map(([status, response]) => [
      status,
      toResponse(response, (schema) => components.refer(schema, "output", isSmall(schema) ? undefined : name)),
    ]),
  );
}

/** Whether a schema needs no name of its own: a text, anything, or a list. */
function isSmall(schema: z.ZodType): boolean {
  return schema instanceof z.ZodString || schema instanceof z.ZodUnknown || schema instanceof z.ZodArray;
}

function toResponse(
  { description: about, body, events, headers, contentType = "application/json" }: ResponseDeclaration,
  refer: (schema: z.ZodType) => JsonSchema,
): JsonSchema {
  const content: JsonSchema = {};
  if (body) content[contentType] = { schema: refer(body) };
  if (events) content["text/event-stream"] = { schema: refer(events) };
  return {
    description: about,
    ...(headers && { headers: toHeaders(headers) }),
    ...(Object.keys(content).length === 0 ? {} : { content }),
  };
}

function toHeaders(headers: Readonly<Record<string, string>>): JsonSchema {
  const described = Object.entries(headers).map(([name, about]) => [
    name,
    { description: about, schema: { type: "string" } },
  ]);
  return Object.fromEntries(described);
}

/** The error codes that a route can respond with: its own, and those of its kind. */
export function errorCodesOf(route: AnyRoute): ErrorCode[] {
  const isPublic = route.auth === "public";
  const isOperators = route.auth === "operator";
  const takesBody = route.body !== undefined || route.multipart !== undefined;
  const takesInput = takesBody || route.query !== undefined || (route.method === "post" && !isPublic);
  const codes: [isGiven: boolean | undefined, codes: readonly ErrorCode[]][] = [
    [!isPublic, ["missing_api_key", "invalid_api_key"]],
    [!isPublic && !isOperators && route.auth !== "member", ["insufficient_role"]],
    [!isPublic, ["insufficient_scope", "foreign_origin"]],
    [route.params !== undefined || isOperators, ["not_found"]],
    [takesInput, ["invalid_request"]],
    [takesBody, ["malformed_json"]],
    [takesBody && !route.envelope, ["request_too_large", "unsupported_media_type"]],
    [takesIdempotencyKey(route), ["idempotency_key_reused", "idempotency_in_progress", "quota_exceeded"]],
    [!isPublic, ["rate_limited", "call_too_deep"]],
    [!isPublic && !isOperators, ["too_many_concurrent"]],
    [route.isAsync, ["wrong_state", "timeout"]],
    [true, [...(route.errors ?? []), "internal"]],
    [!isPublic, ["unavailable", "store_read_only", "storage_full"]],
  ];
  return [...new Set(codes.flatMap(([isGiven, some]) => (isGiven ? some : [])))];
}

function toErrorResponses(route: AnyRoute, components: Components): Record<string, JsonSchema> {
  const { dialect } = route;
  const toSample = (code: ErrorCode) => {
    const view = { type: errorCodes[code], code, message: "…" };
    return (
      dialect?.toError(view, SAMPLE_ID) ?? {
        status: toStatus(view),
        body: { error: { ...view, requestId: SAMPLE_ID } },
      }
    );
  };
  const schema = components.refer(dialect?.errorSchema ?? errorBodySchema, "output");
  const byStatus = Map.groupBy(errorCodesOf(route), (code) => toSample(code).status);
  const responses = [...byStatus].map(([status, codes]) => {
    const content = { "application/json": { schema, example: toSample(codes[0] ?? "internal").body } };
    return [status, { description: codes.map((each) => `\`${each}\``).join(", "), content }] as const;
  });
  return Object.fromEntries(responses.filter(([status]) => route.responses[status] === undefined));
}
