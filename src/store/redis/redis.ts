import { type Command, Redis, type RedisOptions, ReplyError } from "ioredis";
import { AppError, ConfigError, unavailable } from "../../lib/errors.ts";
import { firstResponse } from "../../lib/first-response.ts";
import { keepDoing } from "../../lib/keep-doing.ts";
import { type Logger, makeErrorLog } from "../../observe/logger.ts";
import { inspectRedis } from "./redis-server-info.ts";
import { connectorOfSlot } from "./redis-slot.ts";
import { type RedisPlace, readRedisUrl } from "./redis-url.ts";

/** Longest wait for one command of a producer, in ms; then the caller gets 503. */
const COMMAND_TIMEOUT_MS = 3_000;
/**
 * Silence on a command after which a connection counts as dead and is made again, in ms: a load balancer or a network may drop
 * it without a word. A blocking command of a worker is answered within 10 s (BullMQ's own limit).
 */
const PRODUCER_SILENCE_MS = 3_000;
const LASTING_SILENCE_MS = 12_000;
/** How often a subscription is asked for a sign of life, in ms. */
const PING_EVERY_MS = 5_000;
/** TCP's own probes of an idle connection begin after this time, in ms. */
const KEEP_ALIVE_MS = 5_000;
/** Longest time for one connection, the look-up of its name included, in ms: a dead name server alone takes 5 s. */
const CONNECT_TIMEOUT_MS = 8_000;
/** Longest wait for the first connection, in ms. */
const START_TIMEOUT_MS = 15_000;
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
  ["CLUSTERDOWN", "its cluster is not complete"],
  ["MOVED", "its keys are on another server now"],
  ["ASK", "its keys move to another server"],
  ["TRYAGAIN", "its keys move to another server"],
  ["NOREPLICAS", "it has too few replicas"],
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
function codeRejections(command: Command): void {
  const { reject } = command;
  const rejectCoded = (error: Error) =>
    reject(error instanceof ReplyError ? error : Object.assign(error, { code: REDIS_UNAVAILABLE }));
  command.reject = rejectCoded;
}

class CodedRedis extends Redis {
  override sendCommand(command: Command, stream?: Parameters<Redis["sendCommand"]>[1]): unknown {
    codeRejections(command);
    return super.sendCommand(command, stream);
  }

  /** Ends, as ioredis does not, a connection too that waits for its next attempt to connect: BullMQ waits for the end of its own. */
  override disconnect(reconnect = false): void {
    if (this.status === "reconnecting" && !reconnect) this.status = "wait"; // of such a one ioredis says that it has ended
    super.disconnect(reconnect);
  }
}

/** The client's options, less the one that would change the type of every answer. */
type Profile = Omit<RedisOptions, "replyMapping">;

/** What all connections have. After a failover the old primary refuses writes: its name leads to the new one by then. */
const common = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  keepAlive: KEEP_ALIVE_MS,
  retryStrategy: (attempts: number) => Math.min(attempts * 50, MAX_RECONNECT_MS),
  reconnectOnError: ({ message }: Error) => /READONLY|^MOVED /.test(message),
} satisfies Profile;

const producing = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 1,
  commandTimeout: COMMAND_TIMEOUT_MS,
  socketTimeout: PRODUCER_SILENCE_MS,
  enableAutoPipelining: false,
} satisfies Profile;

const lasting = { maxRetriesPerRequest: null, socketTimeout: LASTING_SILENCE_MS } satisfies Profile;

function connect(place: RedisPlace & { key: string }, profile: Profile): Redis {
  const options = { ...common, ...profile };
  if (place.kind === "server") return new CodedRedis(place.url, options);
  const { hosts } = place;
  const { isTls, ...login } = place.access;
  const tls = isTls ? { tls: {} } : {};
  if (place.kind === "sentinel") {
    const { username, password } = place.sentinel;
    return new CodedRedis({
      ...options,
      ...login,
      ...tls,
      sentinels: hosts,
      name: place.primary,
      ...(username && { sentinelUsername: username }),
      ...(password && { sentinelPassword: password }),
      ...(isTls && { sentinelTLS: {}, enableTLSForSentinelMode: true }),
      sentinelCommandTimeout: COMMAND_TIMEOUT_MS,
    });
  }
  const { db: _onlyOne, ...user } = login;
  const asking = { ...user, ...tls, connectTimeout: CONNECT_TIMEOUT_MS, commandTimeout: COMMAND_TIMEOUT_MS };
  const Connector = connectorOfSlot({ hosts, key: place.key, login: asking });
  return new CodedRedis({ ...options, ...user, ...tls, Connector });
}

export type RedisConnections = Awaited<ReturnType<typeof openRedis>>;

/**
 * Opens Redis: a server by a URL or the path of a socket, the primary of Sentinels, or a cluster, where the prefix must put all
 * keys into one slot.
 * @throws AppError `unavailable` when it does not answer within 15 s; ConfigError when it is another kind of Redis than `url`
 * and `isCluster` say.
 */
export async function openRedis(options: { url: string; isCluster?: boolean; prefix: string; logger: Logger }) {
  const { url, isCluster = false, prefix, logger } = options;
  const place = readRedisUrl(url, isCluster);
  if (place === null) throw new ConfigError("REDIS_URL does not fit REDIS_CLUSTER.");
  const onError = makeErrorLog(logger, "Redis does not answer", LOG_EVERY_MS);
  const open: Redis[] = [];
  /** BullMQ copies a connection for its blocking commands, under a name: the copy is looked after as ours are. */
  const openClient = (profile: Profile): Redis => {
    const client = connect({ ...place, key: prefix }, profile);
    open.push(client);
    const duplicate = (options?: Profile) => openClient({ ...profile, ...options });
    return Object.assign(client, { duplicate });
  };
  const producer = openClient(producing);
  const openProducer = async () => {
    await untilReady(producer, place.host);
    return inspectRedis(producer, { isCluster, logger });
  };
  const server = await openProducer().catch((error: unknown) => {
    producer.disconnect();
    throw error;
  });
  producer.on("error", onError);
  const pings: ReturnType<typeof keepDoing>[] = [];
  return {
    /** For commands on behalf of a request: fails at once while Redis is unavailable, and reconnects by itself. */
    producer,
    /** A connection that waits for Redis as long as it takes, for workers. */
    consumer: () => openClient(lasting).on("error", onError),
    /** A connection for subscriptions; it renews them by itself after a break. */
    subscriber: () => {
      const client = openClient(lasting).on("error", onError);
      // Without a command under way nobody would notice that it is dead.
      pings.push(keepDoing(() => client.ping(), { everyMs: PING_EVERY_MS, onError: () => undefined }));
      return client;
    },
    /** Prefix of every key. */
    prefix,
    /**
     * Writes a key that is gone at once, since a Redis without memory still responds, and looks at every connection of this
     * process. Resolves with what is wrong with the server's settings, if anything is known.
     * @throws AppError `unavailable` if it takes no writes, or if a connection is lost, the blocking ones of workers among them.
     */
    async check(): Promise<string | undefined> {
      try {
        await producer.set(`${prefix}:probe`, "", "PX", 1);
      } catch (error) {
        throw toRedisError(error) ?? error;
      }
      const lost = open.filter(({ status }) => status !== "ready" && status !== "end").length; // a worker was closed by its end
      if (lost > 0) throw new AppError("unavailable", `${lost} of ${open.length} connections to Redis are lost`);
      return server.remark();
    },
    close: async () => {
      await Promise.all(pings.map((each) => each.stop()));
      for (const connection of open) if (connection.status !== "end") connection.disconnect();
    },
  };
}

async function untilReady(connection: Redis, host: string): Promise<void> {
  let failure: unknown;
  const keep = (error: unknown) => {
    failure = error;
  };
  const keepWhole = (error: unknown) => {
    if (!sentinelFailed) keep(error); // which says less than that of a Sentinel
  };
  let sentinelFailed = false;
  const keepSentinel = (error: unknown) => {
    sentinelFailed = true;
    keep(error);
  };
  connection.on("error", keepWhole).on("sentinelError", keepSentinel);
  await firstResponse({
    setting: "REDIS_URL",
    host,
    timeoutMs: START_TIMEOUT_MS,
    answer: new Promise<void>((resolve) => void connection.once("ready", resolve)),
    failure: () => failure,
  });
  connection.off("error", keepWhole).off("sentinelError", keepSentinel);
}
