import { type Command, Redis, type RedisOptions, ReplyError } from "ioredis";
import { AppError, unavailable } from "./errors.ts";
import { firstResponse } from "./first-response.ts";
import { type Logger, makeErrorLog } from "./logger.ts";

/** Longest wait for one command of a producer, in ms; then the caller gets 503. */
const COMMAND_TIMEOUT_MS = 3_000;
/** Longest wait for the first connection, in ms. */
const CONNECT_TIMEOUT_MS = 5_000;
/** Longest pause between two attempts to reconnect, in ms. */
const MAX_RECONNECT_MS = 1_000;
/** At most one line about a lost connection in this time, in ms. */
const LOG_EVERY_MS = 10_000;

const REDIS_UNAVAILABLE = "REDIS_UNAVAILABLE";

/** Whether a command failed because Redis did not answer it: no connection, a lost one, or no answer in time. */
export function isRedisUnavailable(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === REDIS_UNAVAILABLE;
}

/** Why Redis refuses writes, by the first word of its reply. */
const refusals = new Map([
  ["OOM", "its memory is used up"],
  ["MISCONF", "it cannot save them to its disk"],
  ["READONLY", "it is a replica"],
]);

/** The error of a Redis that does not respond, or takes no writes, for the caller; undefined for any other error. */
export function toRedisError(error: unknown): AppError | undefined {
  if (isRedisUnavailable(error)) return unavailable("Redis", error);
  if (!(error instanceof Error && error instanceof ReplyError)) return undefined;
  const why = refusals.get(String(error.message).split(" ", 1)[0] ?? "");
  if (why === undefined) return undefined;
  return new AppError("unavailable", `Redis takes no writes right now: ${why}.`, { retryable: true, cause: error });
}

/** ioredis rejects the commands that Redis did not answer with bare errors; here each of them gets a code. */
class CodedRedis extends Redis {
  override sendCommand(command: Command, stream?: Parameters<Redis["sendCommand"]>[1]): unknown {
    const { reject } = command;
    const rejectCoded = (error: Error) => {
      reject(error instanceof ReplyError ? error : Object.assign(error, { code: REDIS_UNAVAILABLE }));
    };
    command.reject = rejectCoded;
    return super.sendCommand(command, stream);
  }
}

/** The client's options, less the one that would change the type of every answer. */
type Profile = Omit<RedisOptions, "replyMapping">;

export type RedisConnections = Awaited<ReturnType<typeof openRedis>>;

/** Opens Redis at a URL, or the path of a socket. @throws AppError `unavailable` when it does not answer within 5 s. */
export async function openRedis(options: { url: string; prefix: string; logger: Logger }) {
  const { url, prefix } = options;
  const onError = makeErrorLog(options.logger, "Redis does not answer", LOG_EVERY_MS);
  const open: Redis[] = [];
  const connect = (profile: Profile) => {
    const retryStrategy = (attempts: number) => Math.min(attempts * 50, MAX_RECONNECT_MS);
    const connection = new CodedRedis(url, { ...profile, retryStrategy });
    open.push(connection);
    return connection;
  };
  const lasting = (): Redis => connect({ maxRetriesPerRequest: null }).on("error", onError);
  const producer: Redis = connect({
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: COMMAND_TIMEOUT_MS,
    enableAutoPipelining: false,
  });
  try {
    await untilReady(producer);
  } catch (error) {
    producer.disconnect();
    throw error;
  }
  producer.on("error", onError);
  return {
    /** For commands on behalf of a request: fails at once while Redis is unavailable, and reconnects by itself. */
    producer,
    /** A connection that waits for Redis as long as it takes, for workers. */
    consumer: lasting,
    /** A connection for subscriptions; it renews them by itself after a break. */
    subscriber: lasting,
    /** Prefix of every key. */
    prefix,
    close: async () => {
      for (const connection of open) connection.disconnect();
    },
  };
}

async function untilReady(connection: Redis): Promise<void> {
  let failure: unknown;
  const keep = (error: unknown) => {
    failure = error;
  };
  connection.on("error", keep);
  const { path, host, port } = connection.options;
  await firstResponse({
    setting: "REDIS_URL",
    host: path ?? `${host}:${port}`,
    timeoutMs: CONNECT_TIMEOUT_MS,
    answer: new Promise<void>((resolve) => void connection.once("ready", resolve)),
    failure: () => failure,
  });
  connection.off("error", keep);
}
