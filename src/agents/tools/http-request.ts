import { z } from "zod";
import { AppError } from "../../lib/errors.ts";
import { readPrefix } from "../../net/egress.ts";
import { fillHeaders, headersSchema } from "./headers.ts";
import type { ToolKind, ToolSetup } from "./tool.ts";

const TIMEOUT_MS = 30_000;
/** Bytes of a body that are read; what the model sees of it is cut further. */
const MAX_BODY_BYTES = 256 << 10;
const MAX_SENT_CHARACTERS = 200_000;
const textTypes = /^(text\/|application\/(json|xml|[\w.+-]*\+(json|xml)|javascript|x-www-form-urlencoded|yaml))/;

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;

/** A host, as `api.acme.io`, `*.acme.io` for all below it, each with a port or without, and with a scheme or without. */
const hostPattern = z
  .string()
  .regex(
    /^(https?:\/\/)?(\*\.)?[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?(:\d{1,5})?$/,
    "must be a host, as api.acme.io or *.acme.io",
  );

const schema = z.strictObject({
  allowedHosts: z.array(hostPattern).min(1).max(50),
  methods: z.array(z.enum(methods)).min(1).optional().describe("Default: GET"),
  headers: headersSchema,
});
type Config = z.output<typeof schema>;

const toInput = (allowed: readonly [string, ...string[]]) =>
  z.object({
    url: z.string().min(1).max(4_000),
    method: z.enum(allowed).optional().describe(`Default: ${allowed[0]}`),
    body: z
      .union([z.string().max(MAX_SENT_CHARACTERS), z.record(z.string(), z.unknown())])
      .optional()
      .describe("A text, or an object that is sent as JSON"),
  });
type Input = z.output<ReturnType<typeof toInput>>;

/** Calls the hosts that the agent is allowed to, and none else, at public addresses. Redirects are reported, not followed. */
export const httpRequest: ToolKind<Config> = {
  schema,
  make(config, setup) {
    const [first = "GET", ...others] = config.methods ?? [];
    const allowed = [first, ...others] as const;
    const { tool, about, callOf } = setup;
    const description = `Makes an HTTP request (${allowed.join(", ")}) to ${config.allowedHosts.join(", ")}.`;
    return tool(
      ({ method = first, ...input }, call) =>
        request(setup, config, { input: { ...input, method }, call: callOf(call) }),
      { ...about(description, TIMEOUT_MS), schema: toInput(allowed) },
    );
  },
};

async function request(
  { deps, run, context: given }: ToolSetup,
  { allowedHosts, headers }: Config,
  { input, call }: { input: Input & { method: string }; call: ReturnType<ToolSetup["callOf"]> },
): Promise<string> {
  const { url, method, body } = input;
  const { url: target, isAllowed } = deps.egress.check(url);
  const entry = allowedHosts.find((pattern) => isOfHost(target, pattern));
  if (entry === undefined) {
    const hint = target.port === "" ? "" : " A port is part of the host.";
    const message = `The host ${target.host} is not allowed. Allowed: ${allowedHosts.join(", ")}.${hint}`;
    throw new AppError("source_refused", message);
  }
  if (headers && target.protocol === "http:" && !isAllowed && !entry.startsWith("http://")) {
    throw new AppError(
      "source_refused",
      `The headers of this tool are sent over https only, unless it allows http://${entry}.`,
    );
  }
  const isJson = typeof body === "object";
  const response = await deps.egress.fetch(target, {
    method,
    signal: call.signal,
    headers: {
      accept: "application/json, text/*;q=0.9, */*;q=0.1",
      ...(isJson ? { "content-type": "application/json" } : {}),
      ...fillHeaders(await deps.credentials.open(run.tenantId, headers), given),
      "idempotency-key": call.idempotencyKey,
    },
    ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : body }),
  });
  call.note({ isError: response.status >= 400 });
  return toText(response);
}

/** Whether a URL is of a host as `api.acme.io`, `*.acme.io`, each with a port or with that of the scheme. */
function isOfHost(url: URL, pattern: string): boolean {
  const [, scheme, name = "", port = ""] = /^(?:(https?:)\/\/)?([^:]*)(?::(\d+))?$/.exec(pattern) ?? [];
  if (scheme !== undefined && scheme !== url.protocol) return false;
  if (url.port !== port && !(port !== "" && url.port === "" && port === (url.protocol === "https:" ? "443" : "80")))
    return false;
  const host = url.hostname.toLowerCase();
  return name.startsWith("*.") ? host.endsWith(name.slice(1)) : host === name;
}

async function toText(response: Response): Promise<string> {
  const type = response.headers.get("content-type") ?? "";
  const location = response.headers.get("location");
  const head = [`HTTP ${response.status}`, type && `content-type: ${type}`, location && `location: ${location}`];
  const lines = head.filter(Boolean);
  if (!textTypes.test(type) && type !== "") {
    await response.body?.cancel();
    return [...lines, "", "[a body that is no text]"].join("\n");
  }
  const { text, isCut } = await readPrefix(response, MAX_BODY_BYTES);
  return [...lines, "", text, ...(isCut ? [`[only the first ${MAX_BODY_BYTES} bytes were read]`] : [])].join("\n");
}
