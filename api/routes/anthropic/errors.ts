import type { z } from "zod";
import { WireRefusal } from "../../../src/gateway/providers/wire-errors.ts";
import { defined } from "../../../src/lib/defined.ts";
import type { ErrorView } from "../../../src/lib/errors.ts";
import { apiErrorSchema } from "../../../src/surfaces/messages/schemas.ts";
import { toStatus } from "../../middleware/errors.ts";
import type { RouteDialect, SseMessage } from "../../route.ts";

/** Anthropic's types of errors by their statuses: https://platform.claude.com/docs/en/api/errors. */
const typeOfStatus: Record<number, string> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

/** Our statuses that Anthropic's clients do not know, and what says the same to them. */
const statusInstead: Record<number, number> = {
  405: 400,
  409: 400,
  415: 400,
  422: 400,
  499: 500,
  502: 500,
  503: 529,
  507: 529,
};

/** How the paths of Anthropic's API report errors. */
export const anthropicDialect: RouteDialect = {
  requestIdHeader: "request-id",
  errorSchema: apiErrorSchema,
  // Anthropic's own answer to a request that went to it as it came goes back as it came.
  toError: (error, requestId, cause) =>
    cause instanceof WireRefusal
      ? { status: cause.status, body: cause.body }
      : toAnthropicError({ ...error, requestId }),
};

/** The failure of a stream that had begun. */
export const toErrorEvent = (error: ErrorView & { requestId: string }): SseMessage => ({
  event: "error",
  data: toAnthropicError(error).body,
});

/** What a provider says that has no room for more requests: Anthropic's status and type, and the status of all others. */
const overloaded: readonly unknown[] = [503, 529, "overloaded_error"];

function isOverloaded({ code, details }: ErrorView): boolean {
  const { status, code: reason } = Object(details);
  return code === "provider_failed" && (overloaded.includes(status) || overloaded.includes(reason));
}

/** An error in Anthropic's shape. */
export function toAnthropicError({ requestId, ...error }: ErrorView & { requestId: string }) {
  const own = error.code === "unknown_model" ? 404 : toStatus(error);
  const status = isOverloaded(error) ? 529 : (statusInstead[own] ?? own);
  const type = typeOfStatus[status] ?? "api_error";
  const body: z.input<typeof apiErrorSchema> = {
    type: "error",
    error: { type, message: error.message, ...defined({ details: error.details }) },
    request_id: requestId,
  };
  return { status, body };
}
