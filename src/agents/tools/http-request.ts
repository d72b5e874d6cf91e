import { z } from "zod";
import { AppError } from "../../errors.ts";
import type { GuardedRequest } from "../../net/guarded-request.ts";
import { readStart } from "../../net/read-start.ts";
import { fillHeaders } from "./fill-context.ts";
import { type AgentTool, defineTool } from "./tool.ts";
import { type HttpRequestConfig, httpMethods } from "./tool-configs.ts";

const TIMEOUT_MS = 30_000;
/** Bytes of a body that are read; what the model sees of it is cut further. */
const MAX_BODY_BYTES = 256 << 10;
const MAX_SENT_CHARACTERS = 200_000;
const textTypes = /^(text\/|application\/(json|xml|[\w.+-]*\+(json|xml)|javascript|x-www-form-urlencoded|yaml))/;

/** Calls the hosts that the agent is allowed to, and none else, at public addresses. Redirects are told, not followed. */
export function makeHttpRequestTool(
  outside: GuardedRequest,
  named: Pick<AgentTool, "name"> & { description?: string | undefined },
  { allowedHosts, methods = ["GET"], headers }: HttpRequestConfig,
): AgentTool {
  return defineTool({
    name: named.name,
    description: named.description ?? `Makes an HTTP request (${methods.join(", ")}) to ${allowedHosts.join(", ")}.`,
    input: z.object({
      url: z.string().min(1).max(4_000),
      method: z
        .enum(httpMethods)
        .optional()
        .describe(`Default: ${methods[0] ?? "GET"}`),
      body: z
        .union([z.string().max(MAX_SENT_CHARACTERS), z.record(z.string(), z.unknown())])
        .optional()
        .describe("A text, or an object that is sent as JSON"),
    }),
    timeoutMs: TIMEOUT_MS,
    async run({ url, method = methods[0] ?? "GET", body }, { context, idempotencyKey, signal }) {
      const target = outside.check(url);
      if (!allowedHosts.some((pattern) => isOfHost(target, pattern))) {
        throw new AppError(
          "source_refused",
          `The host ${target.host} is not allowed. Allowed: ${allowedHosts.join(", ")}.`,
        );
      }
      if (!methods.includes(method)) {
        throw new AppError("source_refused", `The method ${method} is not allowed. Allowed: ${methods.join(", ")}.`);
      }
      const isJson = typeof body === "object";
      const response = await outside.fetch(target, {
        method,
        signal,
        headers: {
          accept: "application/json, text/*;q=0.9, */*;q=0.1",
          ...(isJson ? { "content-type": "application/json" } : {}),
          ...fillHeaders(headers, context),
          "idempotency-key": idempotencyKey,
        },
        ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : body }),
      });
      return { output: await toText(response), isError: response.status >= 400 };
    },
  });
}

/** Whether a URL is of a host as `api.acme.io`, `*.acme.io`, each with a port or with that of the scheme. */
function isOfHost(url: URL, pattern: string): boolean {
  const [name = "", port = ""] = pattern.split(":");
  if (url.port !== port && !(port !== "" && url.port === "" && port === (url.protocol === "https:" ? "443" : "80")))
    return false;
  const host = url.hostname.toLowerCase();
  return name.startsWith("*.") ? host.endsWith(name.slice(1)) : host === name;
}

async function toText(response: Response): Promise<string> {
  const type = response.headers.get("content-type") ?? "";
  const location = response.headers.get("location");
  const head = [
    `HTTP ${response.status}`,
    ...(type === "" ? [] : [`content-type: ${type}`]),
    ...(location ? [`location: ${location}`] : []),
  ];
  if (!textTypes.test(type) && type !== "") {
    await response.body?.cancel();
    return [...head, "", "[a body that is no text]"].join("\n");
  }
  const { text, isCut } = await readStart(response, MAX_BODY_BYTES);
  return [...head, "", text, ...(isCut ? [`[only the first ${MAX_BODY_BYTES} bytes were read]`] : [])].join("\n");
}
