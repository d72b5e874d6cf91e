import { hostname } from "node:os";
import type { Document } from "../codec.ts";
import { maxDocumentBytes } from "../codec.ts";
import type { CommandContext, CommandFamily } from "../command.ts";
import { commandError } from "../command-error.ts";
import { maxMessageBytes } from "../wire.ts";
import { maxWriteBatch } from "../write-errors.ts";

/** The release of MongoDB whose dialect this is: 7.0, wire version 21. */
const version = "7.0.0";
const maxWireVersion = 21;
const sessionMinutes = 30;

export const serverInfoCommands: CommandFamily = {
  hello: { run: (context) => ({ isWritablePrimary: true, ...describe(context) }) },
  isMaster: { run: (context) => ({ ismaster: true, ...describe(context) }) },
  ismaster: { run: (context) => ({ ismaster: true, ...describe(context) }) },
  ping: { run: () => ({}) },
  buildInfo: { run: buildInfo },
  buildinfo: { run: buildInfo },
  hostInfo: { run: () => ({ system: { currentTime: new Date(), hostname: hostname() }, os: {}, extra: {} }) },
  getParameter: { run: getParameter },
  getCmdLineOpts: { run: () => ({ argv: [], parsed: {} }) },
  serverStatus: { run: serverStatus },
  connectionStatus: {
    run: () => ({ authInfo: { authenticatedUsers: [], authenticatedUserRoles: [], authenticatedUserPrivileges: [] } }),
  },
  whatsmyuri: { run: () => ({ you: "local" }) },
  startSession: { run: () => ({ timeoutMinutes: sessionMinutes }) },
  endSessions: { run: () => ({}) },
  refreshSessions: { run: () => ({}) },
  killSessions: { run: () => ({}) },
  killAllSessions: { run: () => ({}) },
  logout: { run: () => ({}) },
  commitTransaction: { run: refuseTransaction },
  abortTransaction: { run: refuseTransaction },
};

/** A standalone server: drivers then send neither retryable writes nor transactions. No compression is offered. */
function describe(context: CommandContext): Document {
  return {
    helloOk: true,
    maxBsonObjectSize: maxDocumentBytes,
    maxMessageSizeBytes: maxMessageBytes,
    maxWriteBatchSize: maxWriteBatch,
    localTime: new Date(),
    logicalSessionTimeoutMinutes: sessionMinutes,
    connectionId: context.connectionId,
    minWireVersion: 0,
    maxWireVersion,
    readOnly: false,
  };
}

function buildInfo(): Document {
  return {
    version,
    versionArray: [7, 0, 0, 0],
    gitVersion: "switchyard-embedded",
    modules: ["switchyard-embedded"],
    bits: 64,
    debug: false,
    maxBsonObjectSize: maxDocumentBytes,
    storageEngines: ["sqlite"],
  };
}

function getParameter(_context: CommandContext, body: Document): Document {
  if (body.featureCompatibilityVersion !== undefined || body.getParameter === "*") {
    return { featureCompatibilityVersion: { version: "7.0" } };
  }
  throw commandError("InvalidOptions", "no option found to get");
}

function serverStatus(context: CommandContext): Document {
  const uptimeMs = Date.now() - context.engine.startedAt.getTime();
  return {
    host: hostname(),
    version,
    process: "switchyard-embedded",
    pid: process.pid,
    uptime: Math.round(uptimeMs / 1000),
    uptimeMillis: uptimeMs,
    localTime: new Date(),
    mem: { resident: Math.round(process.memoryUsage.rss() / 2 ** 20) },
  };
}

function refuseTransaction(): never {
  throw commandError("IllegalOperation", "Transaction numbers are only allowed on a replica set member or mongos");
}
