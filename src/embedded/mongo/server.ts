import { once } from "node:events";
import { chmod, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { isMainThread } from "node:worker_threads";
import { withDisposables } from "../../lib/disposables.ts";
import type { Logger } from "../../observe/logger.ts";
import { openEngine } from "./commands/command.ts";
import { startHousekeeping } from "./housekeeping.ts";
import { startCheckpoints } from "./storage/checkpoints.ts";
import { type Dispatcher, makeDispatcher } from "./wire/dispatch.ts";
import { isLong, type Lanes, makeLanes } from "./wire/lanes.ts";
import { encodeReply } from "./wire/reply.ts";
import { type Gate, makeGates } from "./wire/scram.ts";
import { frameReply, makeInbox, type Request, readRequest } from "./wire/wire.ts";

type MongoServerOptions = {
  dataFile: string;
  /** Where to listen on a Unix socket; only its owner may connect. */
  socketPath: string;
  /** Whether a write is acknowledged only when it is on the disk, so that a loss of power takes nothing with it. */
  syncWrites?: boolean;
  /** Clients prove that they know it, and the server proves the same to them. Without one any client is served. */
  password?: string;
  logger: Logger;
};

export type MongoServer = Awaited<ReturnType<typeof startMongoServer>>;

const maxConnections = 2_000;
/** How long clients have at the end to take their last answers. */
const drainMs = 2_000;

/** Starts the MongoDB-compatible server of a data file on a Unix socket. One process at a time may have the file. */
export function startMongoServer(options: MongoServerOptions) {
  return withDisposables(async (disposables) => {
    const { logger, socketPath } = options;
    const engine = openEngine(options);
    disposables.add(() => engine.storage.close());
    disposables.add(startCheckpoints(engine.storage, options.dataFile, logger));
    const dispatcher = makeDispatcher(engine);
    disposables.add(() => dispatcher.flush());
    const lanes = makeLanes(dispatcher.flush);
    disposables.add(startHousekeeping(engine, dispatcher));
    const makeGate = options.password === undefined ? undefined : makeGates(options.password);
    const sockets = new Set<Socket>();
    let lastConnectionId = 0;
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
      serveConnection({ socket, connectionId: ++lastConnectionId, dispatcher, lanes, gate: makeGate?.(), logger });
    });
    server.maxConnections = maxConnections;
    disposables.add(() => closeServer(server, sockets, lanes.drain));
    await listen(server, socketPath);
    server.on("error", (error) => logger.error({ err: error }, "the embedded store cannot take a connection"));
    /** For the driver; it holds no password. */
    const url = `mongodb://${encodeURIComponent(socketPath)}/?directConnection=true`;
    logger.info({ url, dataFile: options.dataFile }, "the embedded store listens: for one machine, not for production");
    return {
      url,
      /** Answers what has arrived, commits, and closes connections and file. */
      close: disposables.close,
    };
  });
}

async function listen(server: Server, socketPath: string): Promise<void> {
  // The data file is ours by now, so a socket that is there was left by a process that died.
  await rm(socketPath, { force: true });
  const listening = once(server, "listening");
  // The socket is made inside this call: with that mask it is never open to others, not even for a moment.
  const umask = isMainThread ? process.umask(0o177) : undefined;
  try {
    server.listen(socketPath);
  } finally {
    if (umask !== undefined) process.umask(umask);
  }
  await listening;
  await chmod(socketPath, 0o600);
}

async function closeServer(server: Server, sockets: ReadonlySet<Socket>, drain: () => void): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  await new Promise((resolve) => setImmediate(resolve)); // what has arrived is answered first
  drain();
  for (const socket of sockets) socket.destroySoon();
  const giveUp = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, drainMs);
  await closed;
  clearTimeout(giveUp);
}

let lastReplyId = 0;

/** Answers a client's messages in order, and stops reading while it takes no answers. Other bytes close it alone. */
function serveConnection(options: {
  socket: Socket;
  connectionId: number;
  dispatcher: Dispatcher;
  lanes: Lanes;
  /** Lets commands through once the client has proved itself; any client may run any without it. */
  gate?: Gate | undefined;
  logger: Logger;
}): void {
  const { socket, connectionId, dispatcher, lanes, gate, logger } = options;
  const inbox = makeInbox();
  const response = (request: Request, isFlushed: boolean) => {
    const send = (body: Buffer) => {
      if (request.isSilent || socket.destroyed) return;
      lastReplyId = (lastReplyId + 1) & 0x7fff_ffff;
      if (!socket.write(frameReply(request, body, lastReplyId))) socket.pause();
    };
    const atGate = gate?.(request.body);
    if (atGate === undefined) dispatcher.dispatch(request, { connectionId, isFlushed, send });
    else send(encodeReply(atGate));
  };
  const closingOnError = (work: () => void) => {
    try {
      work();
    } catch (error) {
      logger.warn({ err: error, connectionId }, "a malformed message: the connection is closed");
      socket.destroy();
    }
  };
  const admit = (message: Buffer) => {
    const request = readRequest(message);
    lanes.admit({ connectionId, isLong: isLong(request.body, message.length) }, (isFlushed) =>
      closingOnError(() => response(request, isFlushed)),
    );
  };
  socket.setNoDelay(true);
  socket.on("data", (bytes) =>
    closingOnError(() => {
      inbox.add(bytes);
      for (let message = inbox.take(); message !== undefined; message = inbox.take()) admit(message);
    }),
  );
  socket.on("drain", () => socket.resume());
  socket.on("error", (error) => logger.debug({ err: error, connectionId }, "a client's connection broke"));
}
