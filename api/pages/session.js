/** Calls the API for the pages, with the user's key, which is asked for once and kept in this tab only. */
const storageKey = "switchyard-api-key";

/** An error response of the API. */
class ApiError extends Error {
  constructor(status, error) {
    super(error?.message ?? `The server responded with ${status}.`);
    this.status = status;
    this.code = error?.code;
  }
}

/** The response to a request. @throws ApiError for any but a success. */
async function send(path, { key, body, signal, headers }) {
  const response = await fetch(path, {
    method: body === undefined ? "GET" : "POST",
    signal,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.ok) return response;
  throw new ApiError(response.status, (await response.json().catch(() => ({}))).error);
}

/** The events of a stream, as `{ event, data }`; a part of the stream may end within a line. */
async function* readEvents(body) {
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of body) {
    text += decoder.decode(part, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const field = (name) =>
        lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
      const data = field("data").join("\n");
      if (data !== "") yield { event: field("event")[0] ?? "message", data: JSON.parse(data) };
    }
  }
}

const toSession = (key) => ({
  get: async (path) => (await send(path, { key })).json(),
  post: async (path, body) => (await send(path, { key, body })).json(),
  async *events(path, signal) {
    const response = await send(path, { key, signal, headers: { accept: "text/event-stream" } });
    yield* readEvents(response.body);
  },
});

/**
 * Runs `open` with a session as soon as the API accepts a key; asks for one if none is stored, and again if it is refused.
 * The page has a `#key-form` with an input and a `#key-note`, a `#content`, and a `#forget` button.
 */
export function withSession(open) {
  const form = byId("key-form");
  const forget = byId("forget");
  const showForm = (isShown) => {
    form.hidden = !isShown;
    byId("content").hidden = isShown;
    forget.hidden = isShown;
  };
  const ask = (why) => {
    sessionStorage.removeItem(storageKey);
    showForm(true);
    byId("key-note").textContent = why;
    form.querySelector("input").focus();
  };
  const start = async (key) => {
    showForm(false);
    try {
      await open(toSession(key));
      sessionStorage.setItem(storageKey, key);
    } catch (error) {
      if (error.status === 401) ask("This key is unknown. Try another one.");
      else {
        if (error.status !== undefined) sessionStorage.setItem(storageKey, key); // the key is valid, but the request failed
        const problem = byId("problem");
        problem.textContent = error.message;
        problem.hidden = false;
      }
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    start(form.querySelector("input").value.trim());
  });
  forget.addEventListener("click", () => {
    sessionStorage.removeItem(storageKey);
    location.reload();
  });
  const storedKey = sessionStorage.getItem(storageKey);
  if (storedKey) start(storedKey);
  else ask("");
}

export const byId = (id) => document.querySelector(`#${id}`);

/** An element with a class and texts or elements in it. Texts stay texts: no model output becomes markup. */
export function element(name, className, ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

/** A list of facts, each with its name and its value; what is no fact is left out. */
export function factList(...facts) {
  const entries = facts
    .filter(Boolean)
    .map(([name, ...value]) => [element("dt", "", name), element("dd", "", ...value)]);
  return element("dl", "facts", ...entries.flat());
}

/** What a run has used. */
export const usedBy = ({ tokensUsed, costUsd }) =>
  `${tokensUsed.toLocaleString()} tokens, ${costUsd === 0 ? 0 : costUsd.toFixed(6)} USD`;

/** A time in the user's time zone. */
export function timeElement(iso) {
  const node = element("time", "", new Date(iso).toLocaleString());
  node.dateTime = iso;
  return node;
}

/** A text; a long one is collapsed until the user opens it. */
export function textBlock(text, label) {
  const block = element("pre", "", text);
  block.tabIndex = 0;
  if (text.length <= 600) return block;
  return element("details", "", element("summary", "", `${label}, ${text.length.toLocaleString()} characters`), block);
}
