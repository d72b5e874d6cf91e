import { pollUntil } from "../../support/poll-until.ts";

/** What anything that is asked for may take, in ms: also on a machine that does much else. */
const DEADLINE_MS = 90_000;
/** What one call may take, in ms: longer than any that waits for its job. */
const CALL_TIMEOUT_MS = 120_000;

/** What the check asks of the API beside the browser, by a key. */
export type ApiClient = ReturnType<typeof makeApiClient>;

type Call = { body?: object; form?: FormData; headers?: Record<string, string>; mayFail?: boolean };

export function makeApiClient(url: string, key: string) {
  /** The body of a response. @throws Error for one that is no success, unless that is said to be fine */
  return async function call(method: string, path: string, { body, form, headers, mayFail }: Call = {}) {
    const json = body === undefined ? {} : { "content-type": "application/json" };
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, ...json, ...headers },
      body: form ?? (body === undefined ? null : JSON.stringify(body)),
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    });
    const text = await response.text();
    if (!response.ok && !mayFail) throw new Error(`${method} ${path} answers ${response.status}: ${text}`);
    // Read as the API documents it: what is not there shows as such in the browser.
    return (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>;
  };
}

/** Ends the session of these cookies, as a browser that has them does. */
export async function endSession(url: string, path: "/session" | "/operator/session", cookies: readonly Cookie[]) {
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  const signal = AbortSignal.timeout(CALL_TIMEOUT_MS);
  const { status } = await fetch(url + path, { method: "DELETE", headers: { cookie, origin: url }, signal });
  if (status >= 300) throw new Error(`Ending the session answers ${status}`);
}
type Cookie = { name: string; value: string };

/** The status of `/me` for what a client sends. */
export async function statusOfMe(url: string, headers: Record<string, string>): Promise<number> {
  return (await fetch(`${url}/me`, { headers, signal: AbortSignal.timeout(CALL_TIMEOUT_MS) })).status;
}

/** The id of the newest approval that is pending, once there is one. */
export function waitForApproval(call: ApiClient): Promise<string> {
  return pollUntil(
    async () => {
      const { data } = await call("GET", "/workflows/approvals?status=pending");
      return (data as { approvalId: string }[])[0]?.approvalId; // as the API documents it
    },
    { timeoutMs: DEADLINE_MS },
  );
}

/** Resolves when a job has completed. */
export async function waitForJob(call: ApiClient, jobId: string): Promise<void> {
  await pollUntil(async () => (await call("GET", `/jobs/${jobId}`)).status === "completed", { timeoutMs: DEADLINE_MS });
}
