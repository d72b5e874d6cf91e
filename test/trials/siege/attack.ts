import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Outside } from "./outside.ts";

/** Pause after a call that could not be made at all, in ms. */
const REFUSED_PAUSE_MS = 50;

export type ApiResponse = { status: number; text: string };
export type CallOptions = { json?: unknown; body?: string | Uint8Array<ArrayBuffer>; headers?: Record<string, string> };

/** Calls the product with one key. A call that is cut, or whose connection is refused, has the status 0. */
export type Client = {
  call(method: string, path: string, options?: CallOptions): Promise<ApiResponse>;
  /** Reads the answer at a pace, on a connection of its own, and keeps nothing of it. At 0 it reads the head alone, and waits. */
  readSlowly(path: string, bytesPerSecond: number, options?: CallOptions & { method?: string }): Promise<ApiResponse>;
};

/** What an attack works with. */
export type Field = {
  url: string;
  memberKey: string;
  /** An ordinary member of another tenant than the victim's. */
  member: Client;
  /** The owner of that tenant, for what a member may not prepare. */
  owner: Client;
  /** What that tenant has outside the platform. */
  outside: Outside;
  /** A visitor of the victim's own page: its widget key stands there for everyone to read. */
  visitor: Client;
  /** A caller without a key. */
  anonymous: Client;
  /** Aborts when the attack is over. */
  signal: AbortSignal;
};

/** Room of each tenant's cached answers on the platforms that are attacked, in bytes. */
export const CACHE_BYTES_PER_TENANT = 16 << 20;

/** File descriptors that each process of the attacked platforms may have. */
export const DESCRIPTORS = 8_192;

/** One way to hurt others. `prepare` makes what the attack needs, before anything is measured. */
export type Attack = {
  name: string;
  about: string;
  /** By how much Redis may grow, in MB; where it is not given, that is not judged. */
  maxRedisGrowthMb?: number;
  prepare?(field: Field): Promise<void>;
  run(field: Field): Promise<void>;
};

/** An attack with what its preparation has made. */
export function prepared<T>({
  prepare,
  run,
  ...attack
}: Omit<Attack, "prepare" | "run"> & {
  prepare(field: Field): Promise<T>;
  run(field: Field, made: T): Promise<void>;
}): Attack {
  let made: Promise<T> | undefined;
  return {
    ...attack,
    async prepare(field) {
      made = prepare(field);
      await made;
    },
    run: async (field) => run(field, await (made ?? prepare(field))),
  };
}

/** A client that adds up the bytes of its answers. */
export function makeClient(options: {
  url: string;
  headers: Record<string, string>;
  signal(): AbortSignal;
  onAnswer(bytes: number): void;
}): Client {
  const toHeaders = ({ json, headers }: CallOptions) => ({
    ...options.headers,
    ...(json === undefined ? {} : { "content-type": "application/json" }),
    ...headers,
  });
  return {
    async call(method, path, about = {}) {
      const { json, body = json === undefined ? undefined : JSON.stringify(json) } = about;
      try {
        const response = await fetch(`${options.url}${path}`, {
          method,
          headers: toHeaders(about),
          ...(body === undefined ? {} : { body }),
          signal: options.signal(),
        });
        const text = await response.text();
        options.onAnswer(Buffer.byteLength(text));
        return { status: response.status, text };
      } catch {
        return { status: 0, text: "" }; // cut by the end of the attack, or by the product
      }
    },
    async readSlowly(path, bytesPerSecond, { method = "GET", ...about } = {}) {
      const { json, body = json === undefined ? undefined : JSON.stringify(json) } = about;
      const signal = options.signal();
      try {
        const sent = request(`${options.url}${path}`, { method, agent: false, headers: toHeaders(about), signal });
        sent.end(body);
        const [response] = (await once(sent, "response")) as [IncomingMessage];
        if (bytesPerSecond === 0) await once(response, "close", { signal });
        for await (const part of response as AsyncIterable<Buffer>) {
          options.onAnswer(part.length);
          await delay((1_000 * part.length) / bytesPerSecond, undefined, { signal });
        }
        return { status: response.statusCode ?? 0, text: "" };
      } catch {
        return { status: 0, text: "" }; // as above
      }
    },
  };
}

/** Repeats `call` in a number of lanes at once until the attack is over. */
export async function flood(
  signal: AbortSignal,
  lanes: number,
  call: (turn: number) => Promise<ApiResponse>,
): Promise<void> {
  let turn = 0;
  const lane = async () => {
    while (!signal.aborted) {
      const { status } = await call(turn++);
      if (status === 0 || status === 429) await delay(REFUSED_PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** Submits a file of some type. The form is made once a file: the attacker shall not be busy with its own copies. */
export function ingestFile(
  client: Client,
  form: { body: Uint8Array<ArrayBuffer>; type: string },
  prefer = "respond-async",
): Promise<ApiResponse> {
  const headers = { "content-type": form.type, prefer };
  return client.call("POST", "/rag/ingest", { body: form.body, headers });
}

/** A form with one file and other fields, as it is sent. */
export async function toForm(
  file: { bytes: string | Uint8Array<ArrayBuffer>; type: string; name: string },
  fields: Readonly<Record<string, string>> = {},
) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set("file", new Blob([file.bytes], { type: file.type }), file.name);
  const request = new Response(form);
  return { body: new Uint8Array(await request.arrayBuffer()), type: request.headers.get("content-type") ?? "" };
}

/** The id in a JSON answer. @throws Error when the product refused to make what the attack needs. */
export function idOf({ status, text }: ApiResponse, field: string): string {
  const id: unknown = status >= 200 && status < 300 ? Reflect.get(JSON.parse(text), field) : undefined;
  if (typeof id !== "string") throw new Error(`an attack could not be prepared: ${status} ${text.slice(0, 300)}`);
  return id;
}

/** How long an attack waits for what it needs, and the pause between two looks at it, in ms. */
const PREPARED_TIMEOUT_MS = 240_000;
const LOOK_EVERY_MS = 500;

/** Waits until what is read has `text` in it. @throws Error when it has not in time. */
export async function reaches(client: Client, path: string, text: string): Promise<void> {
  const endsAt = Date.now() + PREPARED_TIMEOUT_MS;
  for (;;) {
    const read = await client.call("GET", path);
    if (read.text.includes(text)) return;
    if (Date.now() > endsAt)
      throw new Error(`an attack could not be prepared: ${read.status} ${read.text.slice(0, 300)}`);
    await delay(LOOK_EVERY_MS);
  }
}
