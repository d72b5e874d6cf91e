import { AppError } from "./errors.ts";

/** How long to wait at start for a service that refuses connections, in ms: it may be starting too. */
const REFUSAL_MS = 3_000;

const reasons: Record<string, string> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "it closed the connection",
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the name could not be resolved",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the network",
  ENOENT: "no such socket",
  EACCES: "no permission to open the socket",
};

/** Fails after 3 s if the connection is refused, after `timeoutMs` if nothing answers. @throws AppError `unavailable`, and says why. */
export async function firstResponse(options: {
  setting: string;
  /** Host and port, or the path of a socket; never a password. */
  host: string;
  timeoutMs: number;
  answer: Promise<unknown>;
  /** The last failure of a connection, if there was one. */
  failure(): unknown;
}): Promise<void> {
  const { setting, host, timeoutMs, failure } = options;
  const fail = (cause: unknown) => {
    const reason = reasonOf(cause) ?? `no answer within ${timeoutMs / 1_000} s`;
    return new AppError("unavailable", `${setting}: ${host} cannot be used (${reason}).`, { cause });
  };
  const timers: NodeJS.Timeout[] = [];
  const late = new Promise<never>((_, reject) => {
    const giveUp = () => reject(fail(failure()));
    timers.push(setTimeout(() => reasonOf(failure()) && giveUp(), Math.min(REFUSAL_MS, timeoutMs)));
    timers.push(setTimeout(giveUp, timeoutMs));
  });
  try {
    await Promise.race([options.answer, late]);
  } catch (error) {
    throw error instanceof AppError ? error : fail(failure() ?? error);
  } finally {
    for (const timer of timers) clearTimeout(timer);
  }
}

/** The reason in words, from an error or from what caused it; undefined when there is none, or a time-out. */
function reasonOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (/^(WRONGPASS|NOAUTH)\b|Authentication failed|auth.*required/i.test(error.message))
    return "user or password refused";
  if (/cluster support disabled/.test(error.message)) return "it is no Redis Cluster: unset REDIS_CLUSTER";
  if (/invalid reply: null|No such master/.test(error.message)) return "the Sentinels know no primary of this name";
  const code = "code" in error ? reasons[String(error.code)] : undefined;
  return code ?? reasonOf(error.cause);
}
