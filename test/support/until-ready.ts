import type { ApiClient } from "./http-client.ts";
import { pollUntil } from "./poll-until.ts";

/** Waits until `/readyz` has this status, and returns the response; a finding of it may be a second old. */
export function untilReady(client: ApiClient, status: number) {
  return pollUntil(
    async () => {
      const response = await client.get("/readyz");
      return response.status === status ? response : null;
    },
    { timeoutMs: 15_000, what: `/readyz with ${status}` },
  );
}
