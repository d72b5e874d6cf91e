import { setTimeout as delay } from "node:timers/promises";

/** Pause after a call that could not be made at all, in ms. */
const REFUSED_PAUSE_MS = 50;

export type ApiResponse = { status: number; text: string };
export type CallOptions = { json?: unknown; body?: string | Uint8Array<ArrayBuffer>; headers?: Record<string, string> };

/** Calls the product with one key. A call that is cut, or whose connection is refused, has the status 0. */
export type Client = { call(method: string, path: string, options?: CallOptions): Promise<ApiResponse> };

/** What an attack works with. */
export type Field = {
  url: string;
  memberKey: string;
  /** An ordinary member of another tenant than the victim's. */
  member: Client;
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

/** A client that adds up the bytes of its answers. */
export function makeClient(options: {
  url: string;
  headers: Record<string, string>;
  signal(): AbortSignal;
  onAnswer(bytes: number): void;
}): Client {
  return {
    async call(method, path, { json, body, headers } = {}) {
      try {
        const response = await fetch(`${options.url}${path}`, {
          method,
          headers: {
            ...options.headers,
            ...(json === undefined ? {} : { "content-type": "application/json" }),
            ...headers,
          },
          ...(json === undefined ? {} : { body: JSON.stringify(json) }),
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
  const id: unknown = status < 300 ? Reflect.get(JSON.parse(text), field) : undefined;
  if (typeof id !== "string") throw new Error(`an attack could not be prepared: ${status} ${text.slice(0, 300)}`);
  return id;
}
