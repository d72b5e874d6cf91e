/** Calls of the API, by the session in the cookie, which no script can read. */

/** An error response of the API. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {{ message?: string, code?: string, param?: string }} [error]
   */
  constructor(status, error) {
    super(error?.message ?? `The server responded with ${status}.`);
    this.status = status;
    this.code = error?.code;
    this.param = error?.param;
  }
}

/** The event of the window that says that the session has ended; its `detail` is the reason. */
export const SIGNED_OUT = "switchyard-signed-out";
/** As that, of the operator's session, which is another one. */
export const OPERATOR_SIGNED_OUT = "switchyard-operator-signed-out";
/** The event of the window that says that the server did not respond, or cannot now. */
export const OUTAGE = "switchyard-outage";

/** What a read may take, in ms. */
const READ_MS = 15_000;

/**
 * @typedef {{ body?: unknown, form?: FormData, headers?: Record<string, string>, signal?: AbortSignal }} CallOptions
 */

/**
 * The response to a request. Throws ApiError for any but a success.
 * @param {string} method
 * @param {string} path
 * @param {CallOptions} [options]
 */
export async function call(method, path, { body, form, headers, signal } = {}) {
  const response = await send(path, {
    method,
    signal: signal ?? (method === "GET" ? AbortSignal.timeout(READ_MS) : null),
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    body: form ?? (body === undefined ? null : JSON.stringify(body)),
  });
  if (response.ok || path === "/readyz") return response; // which is 503 with what is not ready
  const { error } = await response.json().catch(() => ({}));
  const isSignIn = path === "/session" || path === "/operator/session";
  const ended = path.startsWith("/operator/") ? OPERATOR_SIGNED_OUT : SIGNED_OUT;
  if (response.status === 401 && !isSignIn) window.dispatchEvent(new CustomEvent(ended, { detail: error?.message }));
  if (response.status === 503) window.dispatchEvent(new Event(OUTAGE));
  throw new ApiError(response.status, error);
}

/** A response. Throws ApiError 0 if there was none in time. @param {string} path @param {RequestInit} init */
async function send(path, init) {
  try {
    return await fetch(path, init);
  } catch (error) {
    if (/** @type {Error} */ (error).name === "AbortError") throw error; // the caller's own
    window.dispatchEvent(new Event(OUTAGE));
    throw new ApiError(0, { message: "The server does not respond." });
  }
}

/** Whether a request may succeed later. @param {any} error */
export const isPassing = (error) =>
  error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status >= 500);

/** @param {string} path @returns {Promise<any>} */
export const get = async (path) => (await call("GET", path)).json();

/** @param {string} path @param {unknown} body @param {CallOptions} [options] @returns {Promise<any>} */
export const post = async (path, body, options) => (await call("POST", path, { body, ...options })).json();

/** @param {string} path @param {unknown} body @returns {Promise<any>} */
export const put = async (path, body) => (await call("PUT", path, { body })).json();

/** @param {string} path @param {unknown} [body] */
export const remove = (path, body) => call("DELETE", path, { body });

/**
 * The data of each event of a stream, as it comes; a part of the stream may end within a line.
 * @param {Response} response
 * @returns {AsyncGenerator<any>}
 */
export async function* readEvents(response) {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const lines = block.split("\n").filter((line) => line.startsWith("data:"));
      const data = lines.map((line) => line.slice(5).trim()).join("\n");
      if (data !== "") yield JSON.parse(data);
    }
  }
}

/** A query without the fields that are empty. @param {Record<string, string | number | null | undefined>} fields */
export function toQuery(fields) {
  const given = Object.entries(fields).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
}
