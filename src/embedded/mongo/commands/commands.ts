import type { Document } from "../bson/bson-types.ts";
import { maxDocumentBytes } from "../bson/codec.ts";
import { maxMessageBytes } from "../wire/wire.ts";
import type { Command, CommandContext, CommandFamily } from "./command.ts";
import { indexCommands } from "./indexes.ts";
import { readCommands } from "./reads.ts";
import { maxWriteBatch, writeCommands } from "./writes.ts";

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
