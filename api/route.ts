import type { z } from "zod";
import type { ReservedJob } from "../src/jobs/submit.ts";
import type { AppError, ErrorCode, ErrorView } from "../src/lib/errors.ts";
import type { Platform } from "../src/platform.ts";
import type { Role } from "../src/store/key-store.ts";
import type { Caller } from "../src/tenancy/roles.ts";

export type Method = "get" | "post" | "put" | "patch" | "delete";

/** Who may call a route: a key of at least this role, the operator of the service, or anybody. */
type RouteAuth = Role | "operator" | "public";

/**
 * A response that a route can give besides errors: what it means and the schema of its JSON `body` (none: no body).
 * `events` is the schema of one event's data where the same status may also be an event stream.
 */
export type ResponseDeclaration = {
  description: string;
  body?: z.ZodType;
  events?: z.ZodType;
  /** Response headers of its own, for its documentation: name → what it says. */
  headers?: Readonly<Record<string, string>>;
  /** Set where the body is not JSON, as `text/html`. */
  contentType?: string;
};

/** The limits of JSON bodies; see `bodyLimits` of api/read-input.ts. */
export type BodyLimit = "json" | "content" | "tools" | "settings";

/** `text`: the JSON of `body`, where it was made already. */
export type JsonReply = { status: number; body?: unknown; text?: string; headers?: Record<string, string> };

/** One server-sent event. A string is sent as it is, anything else as JSON. */
export type SseMessage = { id?: number | string; event?: string; data: unknown };

/** A stream of server-sent events; each batch goes out in one write. Bytes of whole events go out as they are. */
export type StreamReply = {
  status: 200;
  events: AsyncIterable<readonly SseMessage[] | Buffer>;
  headers?: Record<string, string>;
  /** Send the head before the first event is there. Otherwise an error before the first event is an ordinary error. */
  isEager?: boolean;
  /** What a silent stream sends now and then; by default a comment. */
  heartbeat?: SseMessage;
  /** The event for an error after the first byte; by default `{ error, done: true }`. */
  toErrorEvent?: (error: ErrorView & { requestId: string }) => SseMessage;
};

/** Bytes that are read as the client takes them. `length`: of all of them, where it is known. */
export type BytesReply = {
  status: number;
  bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  length?: number | undefined;
  headers?: Record<string, string>;
};

export type Reply = JsonReply | StreamReply | BytesReply;

/** Whether a reply is made while it is sent. */
export const isStreamed = (reply: Reply): reply is StreamReply | BytesReply => "events" in reply || "bytes" in reply;

/** How a protocol on a route reports a wrong body, and a caller over its limits; undefined: as any other route does. */
export type RouteEnvelope = { toReply(error: AppError, requestId: string): JsonReply | undefined };

/** How the API of another vendor, which a route answers as, reports errors. */
export type RouteDialect = {
  /** The header of the id of a request, beside ours. */
  requestIdHeader: string;
  errorSchema: z.ZodType;
  /** `cause` is that of the error. */
  toError(error: ErrorView, requestId: string, cause?: unknown): { status: number; body: unknown };
};

export type HandlerInput<P = unknown, Q = unknown, B = unknown> = {
  params: P;
  query: Q;
  body: B;
  /** The body as it came; only on routes with a `documentedBody`. */
  bytes?: Buffer;
  /** On a public route, and on one of the operator's, this is `anonymous`, without a tenant. */
  caller: Caller;
  /** Aborts when the client disconnects; from the socket's `close`. */
  signal: AbortSignal;
  platform: Platform;
  requestId: string;
  /** The path of the request, without the query. */
  path: string;
  header(name: string): string | undefined;
  /** Names in `x-svc-ignored` a setting of the request that is not used as requested. */
  ignore(name: string): void;
  /** Sets memory aside, in bytes, for stored contents that the request takes. @throws AppError `too_many_concurrent`, `unavailable`. */
  reserve(bytes: number): void;
  /**
   * Runs a read of much that is stored: four of the tenant run at a time, and one while other tenants work here, with pauses if it
   * reads much. @throws what `read` throws; the signal's reason.
   */
  inTurn<T>(read: () => Promise<T>): Promise<T>;
  /** Why the caller, over its rate, is refused. Only set on routes with an `envelope`; others reply before the handler. */
  rejection?: AppError;
  /** For a call with an `Idempotency-Key`: stores what to replay if this process dies. Call it once the work is accepted. */
  checkpoint(reply: JsonReply): Promise<void>;
  /** Of such a call: its job, if it makes one (`reserveJob`). */
  reservation?: ReservedJob;
};

/** What the routes of a file share: who may call them, and where they stand in the documentation. */
type RouteGroup = { auth: RouteAuth; tags: readonly string[] };

type RouteFields<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, M extends z.ZodType> = {
  summary: string;
  description?: string;
  /** Path parameters; a value that does not fit cannot exist, so it is a 404. */
  params?: P;
  query?: Q;
  /** The JSON body. */
  body?: B;
  /**
   * Set where a provider may get the body as it came: `body` is what is read of every such body, and this the schema by which the
   * handler reads it when it does not go on.
   */
  documentedBody?: z.ZodType;
  /** Which limit holds for the JSON body: `json` (default), the larger `content`, or the smaller `tools` and `settings`. */
  bodyLimit?: BodyLimit;
  /** Whether whole numbers beyond 2^53, which a double rounds, come as texts with all their digits: the body holds a caller's own JSON. */
  keepsDigits?: boolean;
  /** Whether an absent body counts as `{}`. */
  isBodyOptional?: boolean;
  /** Schema of a `multipart/form-data` body, taken beside JSON: text fields and `file` (`uploadedFileSchema`). */
  multipart?: M;
  /**
   * Keeps the file of a multipart body as it comes, of so many bytes at most, in the place of memory: `file` is then a
   * `keptFileSchema`.
   */
  keepsFile?: {
    maxBytes: number;
    keep(
      call: { platform: Platform; caller: Caller },
      chunks: AsyncIterable<Buffer>,
    ): Promise<{ id: string; bytes: number; remove(): Promise<void> }>;
  };
  /** Request headers that the route reads, for its documentation: name → what it does. */
  headers?: Readonly<Record<string, string>>;
  responses: Readonly<Record<number, ResponseDeclaration>>;
  /** Codes of the errors it can give besides those that every route of its kind can. */
  errors?: readonly ErrorCode[];
  /** Whether it is backed by a job and so understands `Prefer: wait=` and `Prefer: respond-async`. */
  isAsync?: boolean;
  /** Whether its stream only watches, and ends when the process stops: the client connects again, to another one. */
  isWatch?: boolean;
  /** Whether it says how the process is, and so waits for no other call; other public routes have their turns. */
  isProbe?: boolean;
  /** Whether it concerns all collections of documents: a key that is limited to some is refused. */
  isForAllCollections?: boolean;
  /** What the `id` of its path names: a key that is limited to collections must have made it. */
  isOfOwn?: "responses" | "conversations";
  /** Whether a widget key may call it, from a page; no other route takes one. */
  isForWidgets?: boolean;
  /**
   * Set where another protocol travels over this route: its errors and refusals are reported in its own envelope, it takes no
   * `Idempotency-Key`, and only our own hosts and pages may call it.
   */
  envelope?: RouteEnvelope;
  dialect?: RouteDialect;
  /** Set where the headers of a request say in which dialect its errors are. */
  dialectOf?(header: (name: string) => string | undefined): RouteDialect | undefined;
  /** The field of the query by which, if it is `true`, a call keeps nothing: it neither takes nor looks at an `Idempotency-Key`. */
  trialField?: string;
  /** Whether the response holds a secret, which must not be kept for repeats by `Idempotency-Key`. */
  hasSecretReply?: boolean;
  /** A body as an example, for the documentation. */
  example?: unknown;
};

type RouteDeclaration<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, M extends z.ZodType> = RouteFields<
  P,
  Q,
  B,
  M
> &
  Partial<RouteGroup> & {
    /** Refuses an input, by throwing, before anything of it is kept, not even the hash that idempotency keeps. */
    screen?(input: HandlerInput<z.output<P>, z.output<Q>, z.output<B> | z.output<M>>): void;
  } & Handling<HandlerInput<z.output<P>, z.output<Q>, z.output<B> | z.output<M>>>;

/** A route makes its reply in `handler`, or only the body of its one successful response in `result`. */
type Handling<I> =
  | { handler(input: I): Promise<Reply> | Reply; result?: never }
  | { result(input: I): unknown; handler?: never };

/** A route without the types of its input: what mounting and documenting need. */
export type AnyRoute = RouteGroup &
  RouteFields<z.ZodType, z.ZodType, z.ZodType, z.ZodType> & {
    method: Method;
    /** Path with parameters as `:name`. */
    path: string;
    // A method, not a property: its parameter is compared loosely, so that every declaration is an AnyRoute.
    screen?(input: HandlerInput<never, never, never>): void;
    handler(input: HandlerInput<never, never, never>): Promise<Reply> | Reply;
  };

/** Whether a repeat of a call of the route is recognised by its `Idempotency-Key`. */
export function takesIdempotencyKey(route: AnyRoute, query?: unknown): boolean {
  const { method, auth, envelope, trialField } = route;
  if (trialField !== undefined && Object(query)[trialField] === "true") return false;
  return method === "post" && isForTenants(auth) && envelope === undefined;
}

/** Whether a tenant's key opens a route. */
export const isForTenants = (auth: RouteAuth): auth is Role => auth !== "public" && auth !== "operator";

/**
 * Functions that declare the routes of a group, by method and path; what a route itself says of the group's fields counts.
 * The router, the validation and the OpenAPI entry all come from this one value; the schemas give the types of `params`,
 * `query` and `body` in the handler, which sees parsed input only and returns its response as a value.
 */
export function declareRoutes(group: RouteGroup & { bodyLimit?: BodyLimit; isForAllCollections?: boolean }) {
  const declare =
    (method: Method) =>
    <
      P extends z.ZodType = z.ZodUndefined,
      Q extends z.ZodType = z.ZodUndefined,
      B extends z.ZodType = z.ZodUndefined,
      M extends z.ZodType = z.ZodNever,
    >(
      path: string,
      { result, handler, ...fields }: RouteDeclaration<P, Q, B, M>,
    ): AnyRoute => {
      if (handler !== undefined) return { ...group, method, path, handler, ...fields };
      const status = Number(Object.keys(fields.responses).find((each) => Number(each) < 300));
      return { ...group, method, path, ...fields, handler: async (input) => ({ status, body: await result(input) }) };
    };
  return {
    get: declare("get"),
    post: declare("post"),
    put: declare("put"),
    patch: declare("patch"),
    delete: declare("delete"),
  };
}
