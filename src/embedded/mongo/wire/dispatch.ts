import type { Document } from "../bson/bson-types.ts";
import { maxDocumentBytes } from "../bson/codec.ts";
import { CommandError, commandError, located, notOffered } from "../command-error.ts";
import type { Command, CommandContext, CommandFamily, Engine } from "../commands/command.ts";
import { indexCommands } from "../commands/indexes.ts";
import { readCommands } from "../commands/reads.ts";
import { maxWriteBatch, writeCommands } from "../commands/writes.ts";
import { encodeReply } from "./reply.ts";
import { maxMessageBytes, type Request } from "./wire.ts";

/** The release of MongoDB whose dialect this is: 7.0, wire version 21. */
const version = "7.0.0";
const maxWireVersion = 21;
const sessionMinutes = 30;

const serverInfoCommands: CommandFamily = {
  hello: (context) => ({ isWritablePrimary: true, ...describe(context) }),
  ismaster: (context) => ({ ismaster: true, ...describe(context) }),
  ping: () => ({}),
  buildInfo: () => ({ version, versionArray: [7, 0, 0, 0], modules: ["switchyard-embedded"] }),
  serverStatus: () => ({ version, pid: process.pid, uptime: Math.round(process.uptime()) }),
  endSessions: () => ({}),
};

/** A standalone server: drivers then send neither retryable writes nor transactions. No compression is offered. */
function describe(context: CommandContext): Document {
  return {
    helloOk: true,
    maxBsonObjectSize: maxDocumentBytes,
    maxMessageSizeBytes: maxMessageBytes,
    maxWriteBatchSize: maxWriteBatch,
    logicalSessionTimeoutMinutes: sessionMinutes,
    connectionId: context.connectionId,
    minWireVersion: 0,
    maxWireVersion,
  };
}

const families = { ...serverInfoCommands, ...readCommands, ...writeCommands, ...indexCommands };

/** Every command that the server knows; any other is answered with CommandNotFound. */
export const commands: ReadonlyMap<string, Command> = new Map(Object.entries(families));

export type Dispatcher = ReturnType<typeof makeDispatcher>;
/** Where a request comes from, and where its answer goes. */
type Origin = { connectionId: number; isFlushed?: boolean; send: Held["send"] };
type Held = { reply: Buffer; send: (body: Buffer) => void; again: (() => void) | undefined };

/**
 * Runs commands one after the other. The writes of all commands that arrive in one turn of the event loop share one
 * transaction. Their responses, and those of reads that saw them, leave only after its commit. When the commit fails, none
 * of their writes remains, and each of them runs once more, alone: one that fails takes no other with it, and on a full
 * disk a deletion finds the reserve free.
 */
export function makeDispatcher(engine: Engine) {
  const { storage } = engine;
  const held: Held[] = [];
  let flushTimer: NodeJS.Immediate | undefined;

  const takeHeld = () => held.splice(0);
  const abandon = (error: unknown) => {
    engine.logger.error({ err: error }, "the embedded store could not do a piece of work, and undoes it");
    storage.rollback();
    engine.cursors.clear(); // they may read from the undone writes
    engine.catalog.reload(); // collections, indexes and matrices as the file has them
    const lost = commandError("OperationFailed", "the write could not be made durable");
    const failure = encodeReply(toFailure(storage.toRejection(error) ?? lost));
    for (const { again, send } of takeHeld()) {
      if (again) again();
      else send(failure);
    }
  };
  /** Commits open writes and sends the replies that wait for them. */
  const flush = () => {
    clearImmediate(flushTimer);
    flushTimer = undefined;
    try {
      storage.commit();
    } catch (error) {
      abandon(error);
    }
    for (const { reply, send } of takeHeld()) send(reply);
  };
  const run = (request: Request, { connectionId, isFlushed = false, send }: Origin, again?: () => void) => {
    const reply = response(engine, request, connectionId, { abandon, isLast: again === undefined });
    if (!storage.isWriting()) {
      send(reply);
      return;
    }
    held.push({ reply, send, again });
    if (!isFlushed) flushTimer ??= setImmediate(flush);
  };
  return {
    /**
     * Runs a request; `send` gets the answer's BSON once everything that it rests on is committed: at the end of this turn,
     * or, if `isFlushed`, when `flush` is called.
     */
    dispatch: (request: Request, origin: Origin) =>
      run(request, origin, () => {
        run(request, origin);
        flush();
      }),
    /** Runs work of the server's own and commits it; when it fails nothing of it remains, and the log says so. */
    perform: (work: () => void) => {
      try {
        work();
      } catch (error) {
        abandon(error);
      }
      flush();
    },
    flush,
  };
}

/**
 * The answer of a command, also when it fails. `abandon` undoes what it may have written when it fails as it should not. One
 * that the disk refuses runs once more, if this is not the last time: what makes room may need what the refusal freed.
 */
function response(
  engine: Engine,
  request: Request,
  connectionId: number,
  { abandon, isLast }: { abandon: (error: unknown) => void; isLast: boolean },
): Buffer {
  const writesBefore = engine.storage.writeCount();
  try {
    return encodeReply(runCommand(engine, request, connectionId));
  } catch (error) {
    if (error instanceof CommandError) return encodeReply(toFailure(error));
    engine.logger.error(
      { err: error, command: Object.keys(request.body)[0] },
      "a command of the embedded store failed",
    );
    if (engine.storage.writeCount() > writesBefore) abandon(error); // it may have written a part
    const rejection = engine.storage.toRejection(error);
    if (rejection && !isLast) return response(engine, request, connectionId, { abandon, isLast: true });
    const internal = commandError("InternalError", "the embedded server met an internal error");
    return encodeReply(toFailure(rejection ?? internal));
  }
}

function runCommand(engine: Engine, request: Request, connectionId: number): Document {
  const { body, refusal } = request;
  if (refusal !== undefined) throw refusal;
  const name = Object.keys(body)[0] ?? "";
  const command = commands.get(name);
  if (command === undefined) throw notOffered(`the command ${name}`, "CommandNotFound");
  const db: unknown = body.$db;
  if (typeof db !== "string") throw located(40414, "BSON field '$db' is missing but a required field");
  if (db === "" || /[\0/\\. "$]/.test(db)) {
    throw commandError("InvalidNamespace", `Invalid database name: '${db}'`);
  }
  const reply = command({ engine, db, connectionId, name, target: body[name] }, body);
  reply.ok ??= 1;
  return reply;
}

function toFailure(error: CommandError): Document {
  return { ok: 0, errmsg: error.message, code: error.code, codeName: error.codeName, ...error.details };
}
