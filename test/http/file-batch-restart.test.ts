import { expect } from "chai";
import { itemJobIds } from "../../src/batches/file/run.ts";
import { Rescheduled } from "../../src/jobs/reschedule.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf, viewerOf } from "../support/tenant-of.ts";
import { workContext } from "../support/work-context.ts";

/** There are no workers: the test itself is the one that dies, and the one that resumes. */
describe("a file of requests whose worker dies while it starts the lines", () => {
  let fake: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let tenantId: string;
  before(async () => {
    fake = await startFakeProvider();
    const env = {
      OPENAI_API_KEY: "sk-platform-0123456789abcdef",
      OPENAI_BASE_URL: fake.url,
      ANTHROPIC_API_KEY: "sk-ant-platform-0123456789abc",
    };
    test = await startPlatform({ workers: false, env });
    client = makeClient({ url: test.url, key: test.keys.member });
    tenantId = await tenantOf(test);
  });
  after(async () => {
    await test.close();
    await fake.close();
  });

  const batches = () => test.platform.batches.files;
  const create = async (endpoint: "/v1/chat/completions" | "/v1/embeddings", body: object) => {
    const line = { custom_id: "one", method: "POST", url: endpoint, body };
    const file = await batches().addFile(tenantId, {
      purpose: "batch",
      filename: "lines.jsonl",
      bytes: Buffer.from(JSON.stringify(line)),
    });
    const input = { inputFileId: file._id, endpoint, completionWindow: "24h" };
    return batches().create({ tenantId, keyId: "key_test", subject: "member@test" }, input);
  };
  const run = async (batchId: string, signal = new AbortController().signal) => {
    const { jobId } = await batches().batch(viewerOf(tenantId), batchId);
    await batches().work.run(workContext(test, { tenantId, recordId: batchId, jobId, signal }));
  };

  it("embeds the line again, and charges both", async () => {
    fake.next({ firstByteMs: 20_000, usage: "counted" });
    const model = "text-embedding-3-small";
    const { _id } = await create("/v1/embeddings", { model, input: "What does a lease protect?" });
    const dying = new AbortController();
    const died = run(_id, dying.signal).catch((error: unknown) => error);
    await pollUntil(() => fake.requests.length === 1, { what: "the provider's request" });
    dying.abort();
    expect(await died).to.be.an("error");
    await run(_id);
    expect(await batches().batch(viewerOf(tenantId), _id)).to.include({ status: "completed", completed: 1, failed: 0 });
    await test.platform.gateway.flush();
    const { inputTokens } = fake.served();
    expect((await client.get("/usage")).at("total")).to.include({ requests: 2, inputTokens });
  });

  it("keeps the line of a chat that was started, and its reservation in the budget", async () => {
    const { gateway, store } = test.platform;
    await gateway.setBudget(tenantId, 10);
    const messages = [{ role: "user", content: "What does a lease protect?" }];
    const batch = await create("/v1/chat/completions", { model: "gpt-5.4-nano", messages });
    const isPutOff = async () => (await run(batch._id).catch((error: unknown) => error)) instanceof Rescheduled;
    expect(await isPutOff()).to.equal(true);
    const left = (await gateway.budget(tenantId))?.leftUsd;
    expect(left).to.be.below(10);
    // It died before it could note that the lines are taken up.
    const taken = await batches().batch(viewerOf(tenantId), batch._id);
    await store.files.changeBatch(taken, ["in_progress"], { $set: { status: "validating" } });
    expect(await isPutOff()).to.equal(true);
    expect((await gateway.budget(tenantId))?.leftUsd).to.equal(left);
  });

  it("submits the requests of a batch of messages once, and gives each its result once", async () => {
    const { gateway, store } = test.platform;
    await gateway.setBudget(tenantId, 10);
    const requests = ["claude-haiku-5-5", "meta-llm"].map((model) => {
      const messages = [{ role: "user", content: "What does a lease protect?" }];
      return { custom_id: model, params: { model, max_tokens: 100, messages, tomorrow: [1.5] } };
    });
    const bytes = Buffer.from(JSON.stringify({ requests }));
    const sentWith = { path: "/v1/messages/batches", headers: { "anthropic-beta": "tomorrow" } };
    const made = await batches().createMessages(
      { tenantId, keyId: "key_test", subject: "member@test" },
      { bytes, total: 2, sentWith },
    );
    const isPutOff = async () => (await run(made._id).catch((error: unknown) => error)) instanceof Rescheduled;
    expect(await isPutOff()).to.equal(true);
    const left = (await gateway.budget(tenantId))?.leftUsd;
    expect(left).to.be.below(10);
    // It died before it could note that the requests are begun.
    const begun = await batches().batch(viewerOf(tenantId), made._id);
    await store.files.changeBatch(begun, ["in_progress"], { $set: { status: "validating" } });
    expect(await isPutOff()).to.equal(true);
    expect((await gateway.budget(tenantId))?.leftUsd).to.equal(left);
    const [claude = "", own = ""] = itemJobIds(begun);
    const item = await store.batches.item(tenantId, claude);
    expect(item?.raw).to.deep.equal({ ...sentWith, body: JSON.stringify(requests[0]?.params) });
    const { held } = test.platform.jobs;
    await held.end(claude, { result: { id: "msg_1" } });
    await held.end(own, { error: { type: "upstream_error", code: "provider_failed", message: "It failed." } });
    await run(made._id);
    // It died before it could note that the results are written.
    const finished = await batches().batch(viewerOf(tenantId), made._id);
    await run(made._id);
    expect(await batches().batch(viewerOf(tenantId), made._id)).to.deep.equal(finished);
    expect(finished).to.include({ status: "completed", completed: 1, failed: 1, expired: 0 });
    const { pieces } = await batches().results(viewerOf(tenantId), made._id);
    const results = Buffer.concat(await Array.fromAsync(pieces))
      .toString("utf8")
      .trim()
      .split("\n");
    expect(results.map((line) => JSON.parse(line).result.type)).to.deep.equal(["succeeded", "errored"]);
    await gateway.setBudget(tenantId, null);
  });
});
