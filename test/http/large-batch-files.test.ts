import { createHash } from "node:crypto";
import { expect } from "chai";
import OpenAI, { toFile } from "openai";
import { makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const limit = 1 << 20;
const line = (n: number, more = {}) =>
  JSON.stringify({
    custom_id: `line-${n}`,
    method: "POST",
    url: "/v1/responses",
    body: { model: "switchyard-offline", input: `Lease ${n} protects a job.`, ...more },
  });

describe("large files of /v1/files", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let openai: OpenAI;
  before(async () => {
    const env = { MAX_SOURCE_BYTES: String(limit), BATCH_COLLECT_MS: "100", BATCH_POLL_MS: "100" };
    test = await startPlatform({ env });
    openai = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
  });
  after(() => test.close());

  const used = async () => {
    const usage = await makeClient({ url: test.url, key: test.keys.member }).get("/usage");
    return usage.at("quotas.storedBytes.used") as number;
  };
  const large = Buffer.from(`${Array.from({ length: 30_000 }, (_, n) => line(n)).join("\n")}\n`);
  const upload = async (bytes: Buffer, purpose: "batch" | "user_data") =>
    openai.files.create({ purpose, file: await toFile(bytes, "large.jsonl") });

  it("of requests may be larger than a document, and are given back byte for byte", async () => {
    expect(large.length).to.be.above(4 * limit);
    const before = await used();
    const file = await upload(large, "batch");
    expect(file.bytes).to.equal(large.length);
    expect((await used()) - before).to.equal(large.length);
    const content = await openai.files.content(file.id);
    expect(content.headers.get("content-length")).to.equal(String(large.length));
    const hash = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
    expect(hash(Buffer.from(await content.arrayBuffer()))).to.equal(hash(large));
    await openai.files.delete(file.id);
    expect(await used()).to.equal(before);
  });

  it("leave nothing behind when they are refused, or repeat a call", async () => {
    const before = await used();
    const refused = await upload(large, "user_data").catch((error: unknown) => error);
    if (!(refused instanceof OpenAI.APIError)) throw new Error("it was not refused");
    expect([refused.status, refused.code]).to.deep.equal([413, "request_too_large"]);
    const form = (bytes: Buffer, purpose?: string) => {
      const body = new FormData();
      body.append("file", new Blob([new Uint8Array(bytes)]), "lines.jsonl");
      if (purpose) body.append("purpose", purpose);
      return fetch(`${test.url}/v1/files`, {
        method: "POST",
        headers: { authorization: `Bearer ${test.keys.member}`, "idempotency-key": "upload-1" },
        body,
      });
    };
    expect((await form(large)).status, "without a purpose").to.equal(400);
    const first = await form(large, "batch");
    const again = await form(large, "batch");
    expect(await again.text()).to.equal(await first.text());
    expect((await form(large.subarray(1), "batch")).status, "another file").to.equal(409);
    await pollUntil(async () => (await used()) - before === large.length, {
      what: "the removal of what was not taken",
    });
  });

  it("are answered line by line as responses", async () => {
    const lines = [line(1), line(2, { conversation: "conv_1" }), line(3, { tools: [{ type: "web_search" }] }), ""];
    const file = await upload(Buffer.from(lines.join("\r\n")), "batch");
    const { id } = await openai.batches.create({
      input_file_id: file.id,
      endpoint: "/v1/responses",
      completion_window: "24h",
    });
    const batch = await pollUntil(
      async () => {
        const found = await openai.batches.retrieve(id);
        return found.status === "completed" ? found : null;
      },
      { timeoutMs: 30_000, what: "the end of the batch" },
    );
    expect(batch.request_counts).to.deep.equal({ total: 3, completed: 2, failed: 1 });
    const read = async (fileId = "") =>
      (await (await openai.files.content(fileId)).text())
        .trim()
        .split("\n")
        .map((one) => JSON.parse(one));
    const [first, third] = await read(batch.output_file_id);
    expect(first).to.include({ custom_id: "line-1", error: null });
    expect(first.response.body).to.include({ object: "response", status: "completed", store: false });
    expect(first.response.body.output[0]).to.include({ type: "message", role: "assistant" });
    expect(third.response.body._ignored).to.deep.equal(["tools[0]"]);
    const [second] = await read(batch.error_file_id);
    expect(second.error).to.include({ code: "invalid_request" });
    expect(second.error.message).to.include("conversation");
  });
});
