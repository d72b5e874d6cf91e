import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { z } from "zod";
import { makeAnthropicBatches } from "../../src/gateway/providers/anthropic/batches.ts";
import { makeBatchClient } from "../../src/gateway/providers/batch-http.ts";
import { AppError } from "../../src/lib/errors.ts";

describe("a provider's batch interface", () => {
  const message = { type: "message", role: "assistant", model: "m", content: [{ type: "text", text: "Yes." }] };
  const whole = { ...message, stop_reason: "end_turn", usage: { input_tokens: 1, output_tokens: 1 } };
  const lineOf = (custom_id: string, given: unknown) =>
    `${JSON.stringify({ custom_id, result: { type: "succeeded", message: given } })}\n`;
  const server = createServer((request, response) => {
    response.writeHead(request.url === "/refused" ? 500 : 200);
    if (request.url?.endsWith("/results")) return void response.end(lineOf("a", { odd: 1 }) + lineOf("b", whole));
    response.write('{"n":1}\n', () => response.destroy());
  });
  let url: string;
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => void server.close());
  const context = () => ({ signal: new AbortController().signal, apiKey: "key" });

  it("that breaks off in the middle of a response is asked again, as one that cannot be reached", async () => {
    const client = makeBatchClient(url, () => ({}));
    const schema = z.object({ n: z.number() });
    const seen: unknown[] = [];
    const readLines = async () => {
      for await (const line of client.lines(schema, "/lines", context())) seen.push(line);
    };
    const calls = [readLines(), ...["/json", "/refused"].map((path) => client.json(schema, { path }, context()))];
    for (const ended of await Promise.allSettled(calls)) {
      const error = ended.status === "rejected" ? ended.reason : undefined;
      expect(error).to.be.instanceOf(AppError);
      expect(error).to.include({ code: "provider_failed", retryable: true });
    }
    expect(seen).to.deep.equal([{ n: 1 }]);
  });

  it("whose answer to one item cannot be read gives the others theirs", async () => {
    const results = await Array.fromAsync(makeAnthropicBatches(url, () => ({})).results("batch_1", context()));
    expect(results.map((result) => Object.keys(result))).to.deep.equal([
      ["customId", "error"],
      ["customId", "result", "raw"],
    ]);
  });
});
