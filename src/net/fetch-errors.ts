import { AppError } from "../lib/errors.ts";

/** Whether the same request may succeed later, and what a person reads of it; `host` is that of the URL. */
type Failure = { retryable: boolean; inWords(host: string, timeoutMs: number): string };

const untrusted: Failure = {
  retryable: true,
  inWords: (host) => `The certificate of ${host} is signed by nobody that is trusted here.`,
};
const cut: Failure = {
  retryable: true,
  inWords: (host) => `${host} closed the connection before its answer was complete.`,
};
const noWay: Failure = { retryable: true, inWords: (host) => `There is no way to ${host} over the network.` };
const noTls: Failure = { retryable: true, inWords: (host) => `${host} does not speak TLS as it should.` };
const slowToConnect: Failure = { retryable: true, inWords: (host) => `${host} did not take the connection in time.` };

/** What the system's and the client's codes mean. */
const failures: Record<string, Failure> = {
  ENOTFOUND: { retryable: false, inWords: (host) => `There is no host ${host}.` },
  EAI_AGAIN: { retryable: true, inWords: (host) => `The name ${host} cannot be resolved right now.` },
  ECONNREFUSED: { retryable: true, inWords: (host) => `${host} refused the connection.` },
  ECONNRESET: cut,
  EPIPE: cut,
  UND_ERR_SOCKET: cut,
  EHOSTUNREACH: noWay,
  ENETUNREACH: noWay,
  ETIMEDOUT: slowToConnect,
  UND_ERR_CONNECT_TIMEOUT: slowToConnect,
  CERT_HAS_EXPIRED: { retryable: true, inWords: (host) => `The certificate of ${host} has expired.` },
  CERT_NOT_YET_VALID: { retryable: true, inWords: (host) => `The certificate of ${host} is not valid yet.` },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    retryable: true,
    inWords: (host) => `The certificate of ${host} is for another host.`,
  },
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  EPROTO: noTls,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
};
const late: Failure = { retryable: true, inWords: (host, ms) => `${host} did not answer within ${ms} ms.` };
const other: Failure = { retryable: true, inWords: (host) => `${host} could not be reached.` };

/** A failed fetch in words for the caller: which host, and why. Other names and codes of the system do not reach the message. */
export function asFetchError(error: unknown, { url, timeoutMs }: { url: string | URL; timeoutMs: number }): AppError {
  const causes = [...causesOf(error)];
  const known = causes.find((cause) => cause instanceof AppError);
  if (known) return known;
  const { retryable, inWords } = failureOf(causes);
  const message = inWords(URL.canParse(String(url)) ? new URL(url).host : "The URL", timeoutMs);
  return new AppError("source_unreachable", message, { param: "url", retryable, cause: error });
}

function failureOf(causes: readonly Error[]): Failure {
  const [named] = causes.flatMap((cause) => ("code" in cause ? (failures[String(cause.code)] ?? []) : []));
  if (named) return named;
  return causes.some(({ name }) => name.includes("Timeout")) ? late : other;
}

/** An error and its causes; of an attempt at several addresses, those of each. */
function* causesOf(error: unknown): Generator<Error> {
  if (!(error instanceof Error)) return;
  yield error;
  if (error instanceof AggregateError) for (const each of error.errors) yield* causesOf(each);
  yield* causesOf(error.cause);
}
