import { createParser } from "eventsource-parser";
import type { z } from "zod";
import { allRoutes } from "../../api/all-routes.ts";
import { errorBodySchema, errorCodesOf } from "../../api/openapi.ts";
import { acceptedSchema } from "../../api/prefer.ts";
import type { AnyRoute, ResponseDeclaration } from "../../api/route.ts";
import { documentationRoutes } from "../../api/routes/documentation.ts";

export type ApiResponse = {
  status: number;
  headers: Headers;
  /** The parsed JSON, or the text of any other body; undefined when there is none. */
  body: unknown;
  text: string;
  /** The value at a path of the body, as `data[0].jobId`; undefined where nothing is. */
  at(path: string): unknown;
  /** The text at a path of the body; throws where there is none. */
  string(path: string): string;
};
export type RequestOptions = {
  body?: unknown;
  /** A body that is sent as it is, instead of JSON. */
  raw?: string | Uint8Array<ArrayBuffer> | FormData;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};
export type ApiEvent = { id?: string | undefined; event?: string | undefined; data: unknown };

export type ApiClient = {
  request(method: string, path: string, options?: RequestOptions): Promise<ApiResponse>;
  get(path: string, options?: RequestOptions): Promise<ApiResponse>;
  post(path: string, body?: unknown, options?: RequestOptions): Promise<ApiResponse>;
  delete(path: string, options?: RequestOptions): Promise<ApiResponse>;
  /** Opens an event stream; the events end with the stream. */
  events(
    method: "GET" | "POST",
    path: string,
    options?: RequestOptions,
  ): Promise<{ status: number; headers: Headers; events: AsyncGenerator<ApiEvent> }>;
};

/**
 * A client whose every answer is held against the declaration of its route: the status must be declared, the body must fit
 * the status' schema, an error's code must be among the route's.
 */
export function makeClient(options: {
  url: string;
  key?: string | undefined;
  routes?: readonly AnyRoute[];
}): ApiClient {
  const routes = options.routes ?? [...allRoutes, ...documentationRoutes(allRoutes)];
  const send = (method: string, path: string, { body, raw, headers, signal }: RequestOptions = {}) =>
    fetch(`${options.url}${path}`, {
      method,
      headers: {
        ...(options.key === undefined ? {} : { authorization: `Bearer ${options.key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(raw !== undefined ? { body: raw } : body !== undefined ? { body: JSON.stringify(body) } : {}),
      ...(signal ? { signal } : {}),
      redirect: "manual",
    });
  const request: ApiClient["request"] = async (method, path, requestOptions) => {
    const response = await send(method, path, requestOptions);
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    const body: unknown = text === "" ? undefined : isJson ? JSON.parse(text) : text;
    checkAnswer(routes, { method, path, status: response.status, body });
    return toApiResponse(response, body, text);
  };
  return {
    request,
    get: (path, requestOptions) => request("GET", path, requestOptions),
    post: (path, body, requestOptions) => request("POST", path, { ...requestOptions, body }),
    delete: (path, requestOptions) => request("DELETE", path, requestOptions),
    async events(method, path, requestOptions) {
      const response = await send(method, path, requestOptions);
      const declared = findRoute(routes, method, path)?.responses[response.status]?.events;
      if (response.body === null || !declared) throw new Error(`${method} ${path} gave no stream: ${response.status}`);
      return { status: response.status, headers: response.headers, events: readEvents(response.body, declared) };
    },
  };
}

function toApiResponse({ status, headers }: Response, body: unknown, text: string): ApiResponse {
  const at = (path: string) => valueAt(body, path);
  const string = (path: string) => {
    const value = at(path);
    if (typeof value !== "string") throw new Error(`there is no text at ${path} of ${text.slice(0, 500)}`);
    return value;
  };
  return { status, headers, body, text, at, string };
}

/** The value at a path as `data[0].jobId`. */
export function valueAt(body: unknown, path: string): unknown {
  return path
    .split(/[.[\]]+/)
    .filter((key) => key !== "")
    .reduce<unknown>(
      (value, key) => (typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined),
      body,
    );
}

async function* readEvents(body: ReadableStream<Uint8Array>, schema: z.ZodType): AsyncGenerator<ApiEvent> {
  const pending: ApiEvent[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data }) => pending.push({ id, event, data: data.startsWith("{") ? JSON.parse(data) : data }),
  });
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    for (const event of pending.splice(0)) {
      if (valueAt(event.data, "error") === undefined) schema.parse(event.data);
      yield event;
    }
  }
}

function checkAnswer(
  routes: readonly AnyRoute[],
  answer: { method: string; path: string; status: number; body: unknown },
): void {
  const { method, path, status, body } = answer;
  if (method === "HEAD") return; // it has no body to be held against anything
  const where = `${method} ${path} → ${status}`;
  const route = findRoute(routes, method, path);
  const declared = route && declaredResponse(route, status);
  if (declared) {
    const said = declared.contentType && body === undefined ? "" : body; // an empty text
    if (declared.body) parseOrThrow(declared.body, said, where);
    else if (body !== undefined) throw new Error(`${where} has a body that is not declared: ${JSON.stringify(body)}`);
    return;
  }
  if (status < 400) {
    if (route) throw new Error(`${where} is not declared`);
    return;
  }
  if (!route && body === undefined) return;
  if (route?.dialect) return void parseOrThrow(route.dialect.errorSchema, body, where);
  const { error } = parseOrThrow(errorBodySchema, body, where) as { error: { code: string } }; // what that schema gives
  const isDeclared = !route || errorCodesOf(route).some((code) => code === error.code);
  if (!isDeclared) throw new Error(`${where} answered the code ${error.code}, which is not declared`);
}

function declaredResponse(route: AnyRoute, status: number): ResponseDeclaration | undefined {
  if (status === 202 && route.isAsync) return { description: "accepted", body: acceptedSchema };
  return route.responses[status];
}

function parseOrThrow(schema: z.ZodType, body: unknown, where: string): unknown {
  const result = schema.safeParse(body);
  if (!result.success)
    throw new Error(`${where} does not fit its schema: ${result.error.message}\n${JSON.stringify(body)}`);
  return result.data;
}

function findRoute(routes: readonly AnyRoute[], method: string, path: string): AnyRoute | undefined {
  const [pathname = ""] = path.split("?", 1);
  const wanted = method === "HEAD" ? "get" : method.toLowerCase();
  return routes.find(
    (route) =>
      route.method === wanted &&
      new RegExp(`^${route.path.replace(/[.]/g, "\\.").replace(/:\w+/g, "[^/]+")}$`).test(pathname),
  );
}
