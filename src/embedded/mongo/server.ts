import { chmod, rm } from "node:fs/promises";
import { createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { isMainThread } from "node:worker_threads";
import type { Logger } from "../../logger.ts";
import { withReleasers } from "../../releasers.ts";
import { openEngine } from "./engine.ts";
import { startHousekeeping } from "./housekeeping.ts";
import { serveConnection } from "./wire/connection.ts";
import { makeDispatcher } from "./wire/dispatch.ts";
import { makeGates } from "./wire/scram.ts";

export type MongoServerOptions = {
  dataFile: string;
  /** Where to listen on a Unix socket; only its owner may connect. */
  socketPath?: string;
  /** Loopback address to listen on instead; anything else is refused. Default 127.0.0.1. */
  host?: string;
  /** 0 takes any free port. */
  port?: number;
  /** Clients prove that they know it, and the server proves the same to them. Without one any client is served. */
  password?: string;
  logger: Logger;
};

export type MongoServer = {
  /** For the driver: `mongodb://127.0.0.1:PORT`, or the same with the socket's path. It holds no password. */
  url: string;
  /** Answers what has arrived, commits, and closes connections and file. */
  close(): Promise<void>;
};

const loopbackHosts: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "localhost"]);
const maxConnections = 2_000;
/** How long clients have at the end to take their last answers. */
const drainMs = 2_000;

/**
 * Starts the embedded MongoDB-compatible server over one data file. It is for one machine: a Unix socket or loopback. One
 * process at a time may have the file.
 */
export function startMongoServer(options: MongoServerOptions): Promise<MongoServer> {
  return withReleasers(async (releasers) => {
    const { logger } = options;
    const listenOptions = toListenOptions(options);
    const engine = openEngine({ dataFile: options.dataFile, logger });
    releasers.add(() => engine.storage.close());
    const dispatcher = makeDispatcher(engine);
    releasers.add(() => dispatcher.flush());
    releasers.add(startHousekeeping(engine, dispatcher));
    const makeGate = options.password === undefined ? undefined : makeGates(options.password);
    const sockets = new Set<Socket>();
    let lastConnectionId = 0;
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
      serveConnection({ socket, connectionId: ++lastConnectionId, dispatcher, gate: makeGate?.(), logger });
    });
    server.maxConnections = maxConnections;
    releasers.add(() => closeServer(server, sockets));
    await listen(server, listenOptions, options.socketPath);
    server.on("error", (error) => logger.error({ err: error }, "the embedded store cannot take a connection"));
    const url = toUrl(server, options.socketPath);
    logger.info({ url, dataFile: options.dataFile }, "the embedded store listens: for one machine, not for production");
    return { url, close: () => releasers.close() };
  });
}

function toListenOptions(options: MongoServerOptions): ListenOptions {
  if (options.socketPath !== undefined) return { path: options.socketPath };
  const host = options.host ?? "127.0.0.1";
  if (!loopbackHosts.has(host)) throw new TypeError(`The embedded store listens on loopback only, not on ${host}`);
  return { host, port: options.port ?? 0 };
}

async function listen(server: Server, options: ListenOptions, socketPath: string | undefined): Promise<void> {
  // The data file is ours by now, so a socket that is there was left by a process that died.
  if (socketPath !== undefined) await rm(socketPath, { force: true });
  const listening = new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", resolve);
  });
  // The socket is made inside this call: with that mask it is never open to others, not even for a moment.
  const umask = socketPath !== undefined && isMainThread ? process.umask(0o177) : undefined;
  try {
    server.listen(options);
  } finally {
    if (umask !== undefined) process.umask(umask);
  }
  await listening;
  if (socketPath !== undefined) await chmod(socketPath, 0o600);
}

function toUrl(server: Server, socketPath: string | undefined): string {
  if (socketPath !== undefined) return `mongodb://${encodeURIComponent(socketPath)}/?directConnection=true`;
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("The server has no address");
  const host = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return `mongodb://${host}:${address.port}/?directConnection=true`;
}

async function closeServer(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  await new Promise((resolve) => setImmediate(resolve)); // what has arrived is answered first
  for (const socket of sockets) socket.destroySoon();
  const giveUp = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, drainMs);
  await closed;
  clearTimeout(giveUp);
}
