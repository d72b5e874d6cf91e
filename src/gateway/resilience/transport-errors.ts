import { AppError } from "../../lib/errors.ts";

/** undici's codes for the two time limits that it watches itself. */
const timeoutPhases: Record<string, string> = {
  UND_ERR_CONNECT_TIMEOUT: "connect",
  UND_ERR_HEADERS_TIMEOUT: "first_byte",
};

/** System errors of a connection that did not come about. */
const unreachable: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "ETIMEDOUT",
]);

/** Whether a request was sent and the headers of its answer did not come in time. */
export const isHeadersTimeout = (error: Error) => "code" in error && error.code === "UND_ERR_HEADERS_TIMEOUT";

/** The error of a broken connection, without its addresses; an AppError is the guard's, which did not let it come about. `hasAnswered`: the provider may have done the work. */
export function fromConnectionError(error: Error, hasAnswered: boolean): AppError {
  if (error instanceof AppError) {
    const details = { code: "address_refused" };
    const message = `The provider's address is not called. ${error.message}`;
    return new AppError("provider_failed", message, { details, reason: "access_refused", cause: error });
  }
  const code = "code" in error && typeof error.code === "string" ? error.code : "unknown";
  const phase = timeoutPhases[code];
  if (phase !== undefined) {
    const message =
      phase === "connect" ? "The provider could not be reached in time." : "The provider did not answer in time.";
    const reason = phase === "connect" ? "unreachable" : "silent";
    return new AppError("provider_timeout", message, { details: { phase }, reason, retryable: true, cause: error });
  }
  const message = hasAnswered ? "The provider broke the connection off." : "The provider could not be reached.";
  return new AppError("provider_failed", message, {
    details: { connection: code },
    reason: unreachable.has(code) ? "unreachable" : undefined,
    retryable: true,
    cause: error,
  });
}

/** The error of a provider that failed for now: the same call may succeed later. */
export function providerFault(message: string, details?: object, cause?: unknown): AppError {
  return new AppError("provider_failed", message, { details, retryable: true, cause });
}

/** The error of a stream that ended before its answer was whole. */
export const streamCut = () =>
  providerFault("The provider's stream ended in the middle of the answer.", { code: "stream_cut" });

/** The error of a call that its caller gave up: the signal's own AppError when it has one. */
export function fromAbort(signal: AbortSignal): AppError {
  if (signal.reason instanceof AppError) return signal.reason;
  return new AppError("client_closed", "The caller disconnected before the answer.", { cause: signal.reason });
}
