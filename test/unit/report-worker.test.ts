import { expect } from "chai";
import pino from "pino";
import type { Platform } from "../../src/platform.ts";
import { reportWorker } from "../../workers/start-workers.ts";
import { pollUntil } from "../support/poll-until.ts";

describe("a worker's reports", () => {
  it("says in the log which queues somebody has paused", async () => {
    const lines: string[] = [];
    const logger = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
    const queue = (name: string, isPaused: boolean) => ({ name, isPaused: async () => isPaused });
    const platform = {
      logger,
      queues: { instances: () => [queue("ingestion", true), queue("agent-runs", false)] },
      jobs: { heartbeats: { beat: async () => undefined, stop: async () => undefined } },
    } as unknown as Pick<Platform, "jobs" | "queues" | "logger">;
    const stop = reportWorker(platform, { workerId: "w", read: () => ({ runningJobs: 0, queues: [] }) });
    const line = await pollUntil(() => lines.find((each) => each.includes("paused")), { what: "a line" });
    await stop();
    expect(JSON.parse(line))
      .to.include({ level: 40 })
      .and.deep.include({ queues: ["ingestion"] });
  });
});
