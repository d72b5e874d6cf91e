import { stopServices } from "../support/stop-services.ts";

/** Stops at once, and how many in all. */
const AT_ONCE = 4;
const STOPS = 100;
/** The time of a start, and some of work, in ms. */
const SPREAD_MS = 4_000;

describe("a hundred stops of the private Redis", function () {
  this.timeout(900_000);

  before(function () {
    if (process.platform !== "linux") this.skip();
  });

  it("leave no process, in whatever state of the start or of work they come", async () => {
    const turns = Array.from({ length: STOPS }, (_, n) => n).values();
    const stopSome = async () => {
      for (const n of turns) {
        const signal = n % 3 === 0 ? "SIGKILL" : "SIGTERM";
        await stopServices({ signal, afterMs: Math.round((n / STOPS) * SPREAD_MS), isFolderRemoved: n % 2 === 0 });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, stopSome));
  });
});
