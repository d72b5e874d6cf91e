import { setTimeout as delay } from "node:timers/promises";

type Body = Record<string, unknown>;
export type Call = (
  path: string,
  body?: unknown,
  options?: { method?: string; headers?: Record<string, string> },
) => Promise<Body>;

/** Calls of the API that must succeed; each answers the body. */
export function makeCalls(url: string, key: string): Call {
  return async (path, body, { method = body === undefined ? "GET" : "POST", headers = {} } = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return JSON.parse(text) as Body;
  };
}

/** The header of a call that is not to wait for its job. */
export const later = { headers: { prefer: "respond-async" } };

/** Everything of a list, page by page. */
export async function listAll(call: Call, path: string): Promise<Body[]> {
  const all: Body[] = [];
  for (let cursor = ""; ; ) {
    const page = await call(`${path}${path.includes("?") ? "&" : "?"}limit=100${cursor}`);
    all.push(...(Array.isArray(page) ? page : (page.data as Body[])));
    if (page.nextCursor === null || page.nextCursor === undefined) return all;
    cursor = `&cursor=${page.nextCursor}`;
  }
}

/** Waits until `look` answers true. @throws Error that names what was waited for. */
export async function until(what: string, look: () => Promise<boolean> | boolean, timeoutMs = 60_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await look())) {
    if (performance.now() > deadline) throw new Error(`no ${what} within ${timeoutMs / 1_000} s`);
    await delay(100);
  }
}
