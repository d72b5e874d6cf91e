import { type Stop, stopServices } from "../support/stop-services.ts";

/** A start takes about a second: the first of these are in the middle of it. */
const stops: Stop[] = [300, 900, 1_500, 3_000].flatMap((afterMs, n) => [
  { signal: "SIGTERM" as const, afterMs, isFolderRemoved: n % 2 === 0 },
  { signal: "SIGKILL" as const, afterMs, isFolderRemoved: n % 2 === 1 },
]);

describe("the private Redis", function () {
  this.timeout(60_000);

  before(function () {
    if (process.platform !== "linux") this.skip();
  });

  it("is gone when the whole process group was stopped or killed, also while it starts", async () => {
    await Promise.all(stops.map(stopServices));
  });
});
