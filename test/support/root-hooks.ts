/** Resources that a test run may still hold at its end: Mocha's own output, and what only waits to be collected. */
const harmless = new Set(["TTYWrap", "PipeWrap", "FSReqPromise", "CloseReq", "Immediate", "FSReqCallback"]);
/** How long what was closed may take to go away, in ms. */
const SETTLE_MS = 3_000;

/** Fails the run when a test has left a connection, server, timer, thread or child process open. */
export const mochaHooks = {
  async afterAll(this: Mocha.Context): Promise<void> {
    this.timeout(SETTLE_MS * 3);
    const deadline = performance.now() + SETTLE_MS;
    let open = openResources();
    while (open.length > 0 && performance.now() < deadline) {
      await new Promise((resolve) => setImmediate(resolve));
      open = openResources();
    }
    if (open.length > 0) throw new Error(`left open by a test: ${open.join(", ")}`);
  },
};

function openResources(): string[] {
  const open = process.getActiveResourcesInfo().filter((name) => !harmless.has(name));
  // Mocha's own time-out of this hook is one timer.
  const timer = open.indexOf("Timeout");
  return timer < 0 ? open : open.toSpliced(timer, 1);
}
