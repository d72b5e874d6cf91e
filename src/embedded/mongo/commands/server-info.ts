import type { Document } from "../bson/bson-types.ts";
import { maxDocumentBytes } from "../bson/codec.ts";
import { maxMessageBytes } from "../wire/wire.ts";
import type { CommandContext, CommandFamily } from "./command.ts";
import { maxWriteBatch } from "./writes.ts";

/** The release of MongoDB whose dialect this is: 7.0, wire version 21. */
const version = "7.0.0";
const maxWireVersion = 21;
const sessionMinutes = 30;

export const serverInfoCommands: CommandFamily = {
  hello: { run: (context) => ({ isWritablePrimary: true, ...describe(context) }) },
  ismaster: { run: (context) => ({ ismaster: true, ...describe(context) }) },
  ping: { run: () => ({}) },
  buildInfo: { run: buildInfo },
  serverStatus: { run: serverStatus },
  endSessions: { run: () => ({}) },
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

function buildInfo(): Document {
  return { version, versionArray: [7, 0, 0, 0], modules: ["switchyard-embedded"], maxBsonObjectSize: maxDocumentBytes };
}

function serverStatus(): Document {
  return { version, process: "switchyard-embedded", pid: process.pid, uptime: Math.round(process.uptime()) };
}
