import type { WorkContext } from "../../src/jobs/work.ts";
import type { TestPlatform } from "./start-platform.ts";

/** What a job works with that a test runs by hand, without a worker: it has every turn at once, and its reports are dropped. */
export function workContext(
  { platform: { logger } }: Pick<TestPlatform, "platform">,
  given: Pick<WorkContext, "tenantId" | "recordId" | "jobId"> & Partial<WorkContext>,
): WorkContext {
  return {
    isLastAttempt: false,
    signal: new AbortController().signal,
    logger,
    progress: async () => undefined,
    confirm: async () => undefined,
    step: async () => undefined,
    share: (part) => part(),
    inner: (_at, run) => run(),
    ...given,
  };
}
