import "./compile-cache.ts";
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { closeSharedServices } from "./shared-services.ts";

/** Resources that a test run may still hold at its end: Mocha's own output, and what only waits to be collected. */
const harmless = new Set(["TTYWrap", "PipeWrap", "FSReqPromise", "CloseReq", "Immediate", "FSReqCallback"]);
/** How long what was closed may take to go away, in ms. */
const SETTLE_MS = 3_000;
/** How long the shared services may take to stop, and their files to be read, in ms. */
const CLOSE_MS = 30_000;

/** The sockets that are open, each with the test in whose time it was opened. */
const sockets = new Map<Socket, string>();
let running = "before the first test";

for (const channel of ["net.client.socket", "net.server.socket"]) {
  subscribe(channel, (message) => {
    const { socket } = message as { socket: Socket }; // what Node's documentation says of both channels
    sockets.set(socket, `${channel} opened ${running}`);
    socket.once("close", () => sockets.delete(socket));
  });
}

/** Fails the run when a test has left a connection, server, timer, thread or child process open, or a secret behind. */
export const mochaHooks = {
  beforeEach(this: Mocha.Context): void {
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
    if (open.length > 0) throw new Error(`left open by a test: ${[...open, ...describeSockets()].join(", ")}`);
  },
};

function openResources(): string[] {
  const open = process.getActiveResourcesInfo().filter((name) => !harmless.has(name));
  // Mocha's own time-out of this hook is one timer.
  const timer = open.indexOf("Timeout");
  return timer < 0 ? open : open.toSpliced(timer, 1);
}

/** Says of each socket who opened it and where it goes; those that wait for reuse are among them. */
function describeSockets(): string[] {
  return [...sockets].map(
    ([socket, opened]) => `${opened} (${socket.localPort} to ${socket.remotePort}, ${socket.readyState})`,
  );
}
