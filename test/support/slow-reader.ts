import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";

/** A GET whose answer is not read, beyond its head, until the test does. */
export async function openSlowReader(url: string, { key, method = "GET" }: { key: string; method?: string }) {
  const sent = request(url, { method, agent: false, headers: { authorization: `Bearer ${key}` } });
  sent.on("error", () => undefined); // one that is cut on purpose
  sent.end();
  const [response]: [IncomingMessage] = (await once(sent, "response")) as [IncomingMessage];
  return {
    status: response.statusCode,
    headers: response.headers,
    /** All of the answer. Rejects when the connection is cut in it. */
    async read(): Promise<Buffer> {
      const parts: Buffer[] = [];
      for await (const part of response) parts.push(part);
      return Buffer.concat(parts);
    },
    close: () => sent.destroy(),
  };
}
