import "./compile-cache.ts";
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { closeSharedServices, offerSharedServices } from "./shared-services.ts";

/** Resources that a test run may still hold at its end: Mocha's own output, and what only waits to be collected. */
const harmless = new Set(["TTYWrap", "PipeWrap", "FSReqPromise", "CloseReq", "Immediate", "FSReqCallback"]);
/** How long what was closed may take to go away, in ms. */
const SETTLE_MS = 3_000;
/** How long the shared services may take to stop, and their files to be read, in ms. */
const CLOSE_MS = 30_000;

/** The sockets that are open, each with the test in whose time it was opened. */
const sockets = new Map<Socket, string>();
let running = "before the first test";
let lastFile = "";
/** What was found open after an earlier file of a parallel run: one leak fails one file. */
const reported: string[] = [];

for (const channel of ["net.client.socket", "net.server.socket"]) {
  subscribe(channel, (message) => {
    const { socket } = message as { socket: Socket }; // what Node's documentation says of both channels
    sockets.set(socket, `${channel} opened ${running}`);
    socket.once("close", () => sockets.delete(socket));
  });
}

/** In a parallel run, before its first file: the processes of its files join the services of the main process. */
export async function mochaGlobalSetup(this: { isParallelMode(): boolean }): Promise<void> {
  if (this.isParallelMode()) await offerSharedServices();
}

/** After the last file of a parallel run; what it throws fails the run. */
export const mochaGlobalTeardown = closeSharedServices;

/** Fails the run when a test has left a connection, server, timer, thread or child process open, or a secret behind. */
export const mochaHooks = {
  beforeEach(this: Mocha.Context): void {
    lastFile = this.currentTest?.file ?? "";
    running = `since "${this.currentTest?.fullTitle()}" began`;
  },
  async afterAll(this: Mocha.Context): Promise<void> {
    this.timeout(SETTLE_MS * 3 + CLOSE_MS);
    await closeSharedServices();
    const deadline = performance.now() + SETTLE_MS;
    let open = openResources();
    while (open.length > 0 && performance.now() < deadline) {
      await new Promise((resolve) => setImmediate(resolve));
      open = openResources();
    }
    reported.push(...open);
    if (open.length > 0) {
      throw new Error(`left open by a test, at last of ${lastFile}: ${[...open, ...describeSockets()].join(", ")}`);
    }
  },
};

function openResources(): string[] {
  const open = process.getActiveResourcesInfo().filter((name) => !harmless.has(name));
  // Mocha's own time-out of this hook is one timer.
  for (const known of ["Timeout", ...reported]) {
    const at = open.indexOf(known);
    if (at >= 0) open.splice(at, 1);
  }
  return open;
}

/** Says of each socket who opened it and where it goes; those that wait for reuse are among them. */
function describeSockets(): string[] {
  return [...sockets].map(
    ([socket, opened]) => `${opened} (${socket.localPort} to ${socket.remotePort}, ${socket.readyState})`,
  );
}
