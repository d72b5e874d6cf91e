/** How the pages call the API: with their reader's key, which is asked for once and kept for this tab alone. */
const kept = "switchyard-api-key";

/** What the API refused, in its own words. */
export class Refusal extends Error {
  constructor(status, error) {
    super(error?.message ?? `The server answered ${status}.`);
    this.status = status;
    this.code = error?.code;
  }
}

const send = (path, { key, body, method = body === undefined ? "GET" : "POST", signal, headers }) =>
  fetch(path, {
    method,
    signal,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });

const refusal = async (response) => new Refusal(response.status, (await response.json().catch(() => ({}))).error);

/** The events of a stream, as `{ event, data }`; each part of the stream may end within a line. */
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
  async get(path) {
    const response = await send(path, { key });
    if (!response.ok) throw await refusal(response);
    return response.json();
  },
  async post(path, body) {
    const response = await send(path, { key, body });
    if (!response.ok) throw await refusal(response);
    return response.json();
  },
  async *events(path, signal) {
    const response = await send(path, { key, signal, headers: { accept: "text/event-stream" } });
    if (!response.ok) throw await refusal(response);
    yield* readEvents(response.body);
  },
});

/**
 * Runs `open` with a session once there is a key that the API takes; asks for one where there is none, and again when it is
 * refused. The page has a `#key-form` with an input and a `#key-note`, a `#content`, and a `#forget` button.
 */
export function withSession(open) {
  const form = document.querySelector("#key-form");
  const note = document.querySelector("#key-note");
  const content = document.querySelector("#content");
  const forget = document.querySelector("#forget");
  const ask = (why) => {
    sessionStorage.removeItem(kept);
    form.hidden = false;
    content.hidden = true;
    forget.hidden = true;
    note.textContent = why;
    form.querySelector("input").focus();
  };
  const start = async (key) => {
    form.hidden = true;
    content.hidden = false;
    forget.hidden = false;
    try {
      await open(toSession(key));
      sessionStorage.setItem(kept, key);
    } catch (error) {
      if (error.status === 401) ask("This key is not known. Try another.");
      else {
        if (error.status !== undefined) sessionStorage.setItem(kept, key); // the key is good, the answer is not
        const problem = document.querySelector("#problem");
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
    sessionStorage.removeItem(kept);
    location.reload();
  });
  const there = sessionStorage.getItem(kept);
  if (there) start(there);
  else ask("");
}

/** An element with a class and texts or elements in it. Texts stay texts: nothing that comes from a model becomes markup. */
export function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

/** A time as its reader's clock shows it. */
export function timeElement(iso) {
  const made = element("time", "", new Date(iso).toLocaleString());
  made.dateTime = iso;
  return made;
}

/** A long text that opens on demand; a short one as it is. */
export function textBlock(text, label) {
  const block = element("pre", "", text);
  block.tabIndex = 0;
  if (text.length <= 600) return block;
  return element("details", "", element("summary", "", `${label}, ${text.length.toLocaleString()} characters`), block);
}
