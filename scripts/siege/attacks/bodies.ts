import { connect } from "node:net";
import { type Attack, type Field, flood } from "../attack.ts";

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

/** Opens connections that announce a large body and send none of it. */
async function notify({ url, signal }: Field, headers: string): Promise<void> {
  const { hostname, port } = new URL(url);
  await flood(signal, 13, async () => {
    const socket = connect(Number(port), hostname);
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    const stop = () => socket.destroy();
    signal.addEventListener("abort", stop, { once: true });
    socket.on("error", stop);
    socket.resume();
    socket.write(`POST /rag/ingest HTTP/1.1\r\nhost: ${hostname}\r\n${headers}\r\n\r\n`);
    await closed;
    signal.removeEventListener("abort", stop);
    return { status: 0, text: "" };
  });
}

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
    about: "uploads of 20 MB that are announced and never sent",
    run: (field) =>
      notify(
        field,
        `authorization: Bearer ${field.memberKey}\r\ncontent-type: application/json\r\ncontent-length: ${20 << 20}`,
      ),
  },
  {
    name: "slow-headers",
    about: "requests whose headers never end",
    run: (field) => notify(field, "x-slow: 1\r\nx-never-ending: ".padEnd(1_000, "a")),
  },
];
