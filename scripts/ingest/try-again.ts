import { setTimeout as delay } from "node:timers/promises";
import { type ApiResponse, at } from "./client.ts";

/** Attempts of one call while the server is busy, unavailable or failing. */
const MAX_ATTEMPTS = 12;
/** Waits between two attempts, in ms: doubled each time, half of it at random. */
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 15_000;

type Patience = {
  /** Aborts when the user wants to stop. */
  signal: AbortSignal;
  /** Called when the server has too much to do, with how long it wants us to wait, in ms. */
  onRejected?: ((waitMs: number) => void) | undefined;
};

/** Repeats a call until the server has taken or refused it, or the attempts are used up; undefined when the user stops. */
export async function tryAgain(
  call: () => Promise<ApiResponse>,
  { signal, onRejected }: Patience,
): Promise<ApiResponse | undefined> {
  let response: ApiResponse | undefined;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    if (signal.aborted) return undefined;
    response = await call();
    if (!mayPass(response)) return response;
    if (response.status === 429) onRejected?.(response.retryAfterMs ?? FIRST_WAIT_MS);
    const waitMs = Math.min(FIRST_WAIT_MS * 2 ** attempt, MAX_WAIT_MS) * (0.5 + Math.random() / 2);
    await delay(Math.max(waitMs, response.retryAfterMs ?? 0), undefined, { signal }).catch(() => undefined); // a stop ends it
  }
  return response;
}

/** Whether the same call may succeed later: no answer, too much at once, still running under its key, or the server's fault. */
function mayPass({ status, body }: ApiResponse): boolean {
  return status === 0 || status === 429 || status >= 500 || at(at(body, "error"), "code") === "idempotency_in_progress";
}
