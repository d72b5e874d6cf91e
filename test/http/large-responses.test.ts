import { expect } from "chai";
import { newId } from "../../src/lib/ids.ts";
import { beginResponse } from "../../src/surfaces/responses/response.ts";
import { makeClient } from "../support/http-client.ts";
import { openSlowReader } from "../support/slow-reader.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { whileOthersWork } from "../support/while-others-work.ts";

/** More than the 4 MiB that the sockets between hold of a text that nobody reads: its place would be free at once. */
const TEXT_BYTES = 7 << 20;
/** What of the memory for large bodies one tenant has. */
const TENANT_BYTES = 64 << 20;

describe("a large stored response", function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let url: string;
  before(async () => {
    platform = await startPlatform({ workers: false });
    const tenantId = await tenantOf(platform);
    const id = newId("response");
    const content = [{ type: "output_text", text: "x".repeat(TEXT_BYTES), annotations: [], logprobs: [] }];
    const output = JSON.stringify([{ type: "message", id: "msg_1", status: "completed", role: "assistant", content }]);
    const { output: _none, ...begun } = beginResponse({ model: "meta-llm", input: "Say x." });
    const response = JSON.stringify({ ...begun, id, status: "completed" });
    const input = "[]";
    const expireAt = new Date(Date.now() + 3_600_000);
    await platform.platform.store.responses.insert({
      _id: id,
      tenantId,
      response,
      output,
      input,
      bytes: { response: response.length, output: output.length, input: input.length },
      chain: [],
      total: { items: 1, bytes: output.length },
      createdAt: new Date(),
      expireAt,
      jobId: newId("job"),
      caller: { keyId: newId("apiKey"), role: "member", subject: "member@test", surface: "test" },
      isStreamed: true,
      updatedAt: new Date(),
    });
    const end = { type: "response.completed", response: { ...JSON.parse(response), output: JSON.parse(output) } };
    const events = JSON.stringify([{ ...end, sequence_number: 0 }]);
    const about = { tenantId, responseId: id, from: 0, to: 1, bytes: events.length, expireAt };
    await platform.platform.store.responseEvents.append({ ...about, events, kept: output });
    url = `${platform.url}/v1/responses/${id}`;
  });
  after(() => platform?.close());

  const read = () => openSlowReader(url, { key: platform.keys.member });
  const replay = () => openSlowReader(`${url}?stream=true`, { key: platform.keys.member });

  it("is read once at a time for a tenant while others work, and by few slow readers at a time", async () => {
    const { responses } = platform.platform.store;
    const { shown } = responses;
    let running = 0;
    let most = 0;
    responses.shown = async (...asked) => {
      running += 1;
      most = Math.max(most, running);
      const record = await shown(...asked);
      running -= 1;
      return record;
    };
    const victim = makeClient({ url: platform.url, key: platform.keys.stranger });
    const readers = await whileOthersWork(victim, () => Promise.all(Array.from({ length: 20 }, read)));
    try {
      expect(most, "at once").to.equal(1);
      const statuses = readers.map(({ status }) => status);
      expect(new Set(statuses)).to.deep.equal(new Set([200, 429]));
      const served = readers.filter(({ status }) => status === 200);
      // The sockets between may hold the whole of a text or two, and then its place is free again.
      expect(served.length * TEXT_BYTES).to.be.at.most(TENANT_BYTES + 2 * TEXT_BYTES);
      const refused = readers.find(({ status }) => status === 429);
      expect((await refused?.read())?.toString()).to.contain("too_many_concurrent");
      const bytes = await served[0]?.read();
      expect(JSON.parse(bytes?.toString() ?? "").output[0].content[0].text).to.have.lengthOf(TEXT_BYTES);
      expect((await victim.get("/jobs")).status).to.equal(200);
    } finally {
      responses.shown = shown;
      for (const { close } of readers) close();
    }
  });

  it("is replayed for few slow readers at a time", async () => {
    const readers = await Promise.all(Array.from({ length: 20 }, replay));
    try {
      const served = readers.filter(({ status }) => status === 200);
      expect(served.length).to.be.within(1, TENANT_BYTES / (2 * TEXT_BYTES));
      expect(new Set(readers.map(({ status }) => status))).to.deep.equal(new Set([200, 429]));
      expect((await served[0]?.read())?.length).to.be.above(TEXT_BYTES);
    } finally {
      for (const { close } of readers) close();
    }
  });
});
