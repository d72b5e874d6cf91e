import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";

export type RawResponse = { status: number; headers: Record<string, unknown>; text: string };

/** One POST of JSON through `node:http`, its answer as text: nothing between the test and the wire parses or repairs it. */
export async function postRaw(
  url: string,
  input: { key: string; body: unknown; headers?: Record<string, string> },
): Promise<RawResponse> {
  const body = JSON.stringify(input.body);
  const sent = request(url, {
    method: "POST",
    agent: false,
    headers: {
      authorization: `Bearer ${input.key}`,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      ...input.headers,
    },
  });
  sent.end(body);
  const [response] = await once(sent, "response");
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  return { status: response.statusCode, headers: response.headers, text: Buffer.concat(parts).toString("utf8") };
}

/**
 * A POST of JSON of which only the head is sent: `asked` is when the server asks for its body, `answer` is what it answers
 * without it. `end` closes the connection.
 */
export function beginPost(url: string, { key, length }: { key: string; length: number }) {
  const sent = request(url, {
    method: "POST",
    agent: false,
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "content-length": length,
      expect: "100-continue",
    },
  });
  sent.on("error", () => undefined); // `end` cuts those that are not answered
  sent.flushHeaders();
  const asked = once(sent, "continue");
  const answer = once(sent, "response").then(async ([response]) => {
    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part);
    return { status: response.statusCode as number, body: JSON.parse(Buffer.concat(parts).toString()) };
  });
  for (const either of [asked, answer]) either.catch(() => undefined); // a call has one of the two
  return { asked, answer, end: () => sent.destroy() };
}

/** Sends bytes that no client library would send, and returns all that the server answers until it closes the connection. */
export async function sendBytes(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(text);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(socket, "close");
  return Buffer.concat(chunks).toString("utf8");
}

/** One POST of JSON on a bare socket: every byte that the server sent until it closed the connection, with when it came (ms). */
export async function postBytes(
  url: string,
  input: { key: string; body: unknown },
): Promise<{ text: string; arrivals: { at: number; text: string }[] }> {
  const { hostname, port, pathname } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  const body = JSON.stringify(input.body);
  const head = [
    `POST ${pathname} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    `authorization: Bearer ${input.key}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  const arrivals: { at: number; text: string }[] = [];
  for await (const chunk of socket) arrivals.push({ at: performance.now(), text: chunk.toString("utf8") });
  return { text: arrivals.map((one) => one.text).join(""), arrivals };
}

/**
 * The JSON of each event of a native stream. Throws for anything but `data:` lines that hold JSON, one an event, and
 * heartbeat comments.
 */
export function parseDataLines(text: string): unknown[] {
  const events = text.split("\n\n");
  if (events.pop() !== "") throw new Error(`the stream does not end with an empty line: ${text.slice(-100)}`);
  return events.flatMap((event) => {
    if (event.startsWith(":")) return [];
    if (!/^data: \{.*\}$/.test(event)) throw new Error(`not one data line with JSON: ${event}`);
    return [JSON.parse(event.slice("data: ".length))];
  });
}
