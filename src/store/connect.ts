import { createRequire } from "node:module";
import { MongoClient, type MongoClientOptions, MongoParseError } from "mongodb";
import { ConfigError, unavailable } from "../lib/errors.ts";
import { firstResponse } from "../lib/first-response.ts";

export type StoreConnection = Awaited<ReturnType<typeof connectStore>>;

/**
 * Connects to the MongoDB at `url` (the embedded server, Atlas or any other) and waits until it answers.
 * Finding the server, getting a connection and waiting for an answer take `timeoutMs` (in ms) each at most; an operation
 * that was cut is tried once more by the driver. Its `timeoutMS`, one limit for all of that, has no effect since version 7.
 * @throws AppError `unavailable` when it does not answer in time, ConfigError when the URL is not one.
 */
export async function connectStore(options: { url: string; db: string; timeoutMs: number }) {
  endWritesOnClose();
  const client = makeClient(options.url, {
    appName: "switchyard",
    serverSelectionTimeoutMS: options.timeoutMs,
    socketTimeoutMS: options.timeoutMs,
    waitQueueTimeoutMS: options.timeoutMs,
    connectTimeoutMS: options.timeoutMs,
    maxPoolSize: 32,
    ignoreUndefined: true,
    promoteBuffers: false,
    enableUtf8Validation: false, // it reads every text once more; what is stored was written as UTF-8 by this driver
  });
  const db = client.db(options.db);
  /** Resolves within the store's time-out, or throws `unavailable`. */
  const ping = async (): Promise<void> => {
    try {
      await db.command({ ping: 1 });
    } catch (error) {
      throw unavailable("The store", error);
    }
  };
  let failure: Error | undefined;
  client.on("serverHeartbeatFailed", (event) => {
    failure = event.failure;
  });
  try {
    await firstResponse({
      setting: "MONGODB_URL",
      host: client.options.srvHost ?? client.options.hosts.map(String).join(", "),
      timeoutMs: options.timeoutMs,
      answer: db.command({ ping: 1 }),
      failure: () => failure,
    });
  } catch (error) {
    await client.close();
    throw error;
  }
  client.removeAllListeners("serverHeartbeatFailed");
  return { db, client, ping, close: () => client.close() };
}

/** The longest that one command of an opening may take, in ms: a large collection is indexed for minutes. */
const OPENING_MS = 1_800_000;

/** A connection for what an opening does, without the time limit of requests. @throws ConfigError when the URL is not one. */
export function connectForOpening({ url, db, timeoutMs }: { url: string; db: string; timeoutMs: number }) {
  const client = makeClient(url, {
    appName: "switchyard opening",
    serverSelectionTimeoutMS: timeoutMs,
    connectTimeoutMS: timeoutMs,
    socketTimeoutMS: OPENING_MS,
    maxPoolSize: 4,
    ignoreUndefined: true,
    promoteBuffers: false,
  });
  return { db: client.db(db), close: () => client.close() };
}

function makeClient(url: string, options: MongoClientOptions): MongoClient {
  try {
    return new MongoClient(url, options);
  } catch (error) {
    if (error instanceof MongoParseError) throw new ConfigError(`MONGODB_URL: ${error.message}.`);
    throw error;
  }
}

type DriverConnection = {
  /** Why it was closed; set before `close` is emitted. */
  error: Error | null;
  once(event: "close", listener: () => void): unknown;
  off(event: "close", listener: () => void): unknown;
  writeCommand(command: unknown, options: unknown): Promise<void>;
};

const { Connection } = createRequire(import.meta.url)("mongodb/lib/cmap/connection.js") as {
  Connection: { prototype: DriverConnection };
};
const { writeCommand } = Connection.prototype;

/**
 * Ends the driver's writes together with their connection, for all connections of this process.
 *
 * A write that the socket does not take at once waits for the socket's `drain` or `error`. A socket that is closed without an
 * error (its server was killed, or the socket's time-out is over) emits neither, so that the operation would wait for ever and
 * keep its place in the pool: seen with 7.8.0 at one in five kills of a busy server. To be taken out when the driver does it.
 */
function endWritesOnClose(): void {
  Connection.prototype.writeCommand = async function (command, options) {
    const { promise: closed, reject } = Promise.withResolvers<never>();
    const onClose = () => reject(this.error);
    this.once("close", onClose);
    try {
      await Promise.race([writeCommand.call(this, command, options), closed]);
    } finally {
      this.off("close", onClose);
    }
  };
}
