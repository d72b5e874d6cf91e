import Anthropic from "@anthropic-ai/sdk";
import { expect } from "chai";
import { batchUsage, type FakeBatches, startFakeBatches } from "../support/fake-provider/batch-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf, viewerOf } from "../support/tenant-of.ts";

const claude = "claude-haiku-5-5";
/** Billionths of a USD for one answer of the fake at the full price, as Anthropic's price list has it. */
const claudePrice = { input: 100, output: 500 };

type Params = Anthropic.MessageCreateParamsNonStreaming;
const ask = (content: string, more: object = {}): Params => ({
  model: claude,
  max_tokens: 200,
  messages: [{ role: "user", content }],
  ...more,
});

describe("batches of messages through the official client of Anthropic", function () {
  this.timeout(30_000);
  let upstream: FakeBatches;
  let test: TestPlatform;
  let client: Anthropic;
  let stranger: Anthropic;
  let api: ApiClient;
  before(async () => {
    upstream = await startFakeBatches();
    test = await startPlatform({
      env: {
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789abc",
        ANTHROPIC_BASE_URL: upstream.origin,
        OPENAI_API_KEY: "sk-platform-0123456789abcdef",
        OPENAI_BASE_URL: upstream.url,
        BATCH_COLLECT_MS: "150",
        BATCH_POLL_MS: "100",
        RECONCILE_EVERY_MS: "200",
        MAX_OPEN_BATCHES: "3",
      },
    });
    const clientOf = (apiKey: string) => new Anthropic({ baseURL: test.url, apiKey, maxRetries: 0 });
    client = clientOf(test.keys.member);
    stranger = clientOf(test.keys.stranger);
    api = makeClient({ url: test.url, key: test.keys.member });
  });
  afterEach(() => upstream.setDuration(50));
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const create = (requests: Record<string, Params>) =>
    client.messages.batches.create({
      requests: Object.entries(requests).map(([custom_id, params]) => ({ custom_id, params })),
    });
  it("say how they ended, in whatever word of their provider", async () => {
    const words: Record<string, [word: string, model: string, reason: string | undefined]> = {
      window: ["model_context_window_exceeded", claude, "model_context_window_exceeded"],
      declined: ["refusal", claude, "refusal"],
      later: ["odd_word", claude, "odd_word"],
      cut: ["model_length", "gpt-5.4-nano", "max_tokens"],
      filtered: ["SAFETY", "gpt-5.4-nano", "refusal"],
      unknown: ["odd_word", "gpt-5.4-nano", "max_tokens"],
      broken: ["error", "gpt-5.4-nano", undefined],
    };
    const asked = Object.entries(words).map(([id, [word, model]]) => [id, ask(`END:${word}`, { model })]);
    const batch = await create(Object.fromEntries(asked));
    await ended(batch.id);
    const seen: Record<string, unknown> = {};
    for await (const { custom_id, result } of await client.messages.batches.results(batch.id))
      seen[custom_id] = result.type === "succeeded" ? result.message.stop_reason : undefined;
    expect(seen).to.deep.equal(Object.fromEntries(Object.entries(words).map(([id, [, , reason]]) => [id, reason])));
  });

  const ended = (id: string) =>
    pollUntil(
      async () => {
        const batch = await client.messages.batches.retrieve(id);
        return batch.processing_status === "ended" ? batch : null;
      },
      { timeoutMs: 20_000, what: "the end of the batch" },
    );
  const resultsOf = async (id: string) => {
    const results = await Array.fromAsync(await client.messages.batches.results(id));
    return new Map(results.map(({ custom_id: name, result }) => [name, result]));
  };
  const messageOf = (result: Anthropic.Messages.MessageBatchResult | undefined) => {
    if (result?.type !== "succeeded") throw new Error(`there is no message: ${JSON.stringify(result)}`);
    return result.message;
  };
  const failureOf = async (calling: Promise<unknown>) => {
    const error = await calling.catch((thrown: unknown) => thrown);
    if (!(error instanceof Anthropic.APIError)) throw new Error(`the client raised ${error}`);
    return [error.status, error.type, error.message] as const;
  };
  const spent = async () => {
    await test.platform.gateway.flush();
    return Math.round(Number((await api.get("/usage")).at("total.costUsd") ?? 0) * 1e9);
  };

  it("answers each request: Claude's as it came, others translated, each with its own end", async () => {
    const before = await spent();
    const made = await create({
      claude: ask("THINK What is a lease?", { tomorrow_field: { b: 2.5, a: [] }, thinking: { type: "adaptive" } }),
      refused: ask("FAIL this"),
      late: ask("EXPIRE this"),
      openai: ask("What is a job?", { model: "gpt-5.4-nano", system: "Be short.", top_k: 5 }),
      offline: ask("When does the ferry leave?", { model: "meta-llm", system: "The ferry to Aland leaves at seven." }),
      nobody: ask("Hi", { model: "no-such-model" }),
      wrong: ask("Hi", { model: "meta-llm", max_tokens: 0 }),
    });
    expect(made).to.deep.include({ type: "message_batch", processing_status: "in_progress", results_url: null });
    expect(made.id).to.match(/^msgbatch_/);
    expect(made.request_counts).to.deep.equal({ processing: 7, succeeded: 0, errored: 0, canceled: 0, expired: 0 });
    const batch = await ended(made.id);
    expect(batch.request_counts).to.deep.equal({ processing: 0, succeeded: 3, errored: 3, canceled: 0, expired: 1 });
    expect(Date.parse(batch.ended_at ?? "")).to.be.at.least(Date.parse(batch.created_at));
    const listed = (await api.get("/jobs?limit=100")).at("data") as { title?: string }[]; // the client checked the shape
    const job = listed.find(({ title }) => title === "/v1/messages");
    expect(job).to.have.nested.property("about.batchId", made.id);
    expect(job).to.have.property("startedBy", "member@test");
    const results = await resultsOf(made.id);
    expect([...results.keys()]).to.deep.equal(["claude", "refused", "late", "openai", "offline", "nobody", "wrong"]);
    expect(messageOf(results.get("claude"))).to.deep.equal({
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: claude,
      content: [
        { type: "thinking", thinking: "So.", signature: "c2ln+/==" },
        { type: "text", text: "Re: THINK What is a lease?" },
      ],
      stop_reason: "end_turn",
      usage: { input_tokens: batchUsage.input, output_tokens: batchUsage.output },
    });
    expect(messageOf(results.get("openai"))).to.deep.include({
      content: [{ type: "text", text: "Re: What is a job?" }],
      stop_reason: "end_turn",
      _ignored: ["top_k"],
    });
    expect(JSON.stringify(messageOf(results.get("offline")).content)).to.include("seven");
    const typeOf = (name: string) => {
      const result = results.get(name);
      return result?.type === "errored" ? [result.error.type, result.error.error.type] : result?.type;
    };
    expect(["refused", "late", "nobody", "wrong"].map(typeOf)).to.deep.equal([
      ["error", "invalid_request_error"],
      "expired",
      ["error", "not_found_error"],
      ["error", "invalid_request_error"],
    ]);
    const sent = upstream.batches.flatMap(({ lines }) => lines).find(({ question }) => question.startsWith("THINK"));
    expect(sent?.params).to.deep.equal(
      ask("THINK What is a lease?", { tomorrow_field: { b: 2.5, a: [] }, thinking: { type: "adaptive" } }),
    );
    const { costUsd } = messageOf(results.get("openai")) as unknown as { costUsd: number };
    const half = (batchUsage.input * claudePrice.input + batchUsage.output * claudePrice.output) / 2;
    expect((await spent()) - before).to.equal(half + Math.round(costUsd * 1e9));
  });

  it("sends the beta headers of requests for Claude on, and keeps them apart from those with others", async () => {
    const before = upstream.batches.length;
    const beta = await client.beta.messages.batches.create(
      { requests: [{ custom_id: "one", params: ask("one") }], betas: ["tomorrow-2026-12-01"] },
      { query: { beta: "true" } }, // as earlier versions of this client send
    );
    const plain = await create({ one: ask("two") });
    await Promise.all([ended(beta.id), ended(plain.id)]);
    const about = upstream.batches
      .slice(before)
      .map(({ sentTo, headers, lines }) => [lines[0]?.question, sentTo, headers["anthropic-beta"]]);
    expect(about).to.have.deep.members([
      ["one", "/v1/messages/batches?beta=true", "tomorrow-2026-12-01"],
      ["two", "/v1/messages/batches", undefined],
    ]);
    const results = await Array.fromAsync(await client.beta.messages.batches.results(beta.id));
    expect(results.map(({ result }) => result.type)).to.deep.equal(["succeeded"]);
  });

  it("lists a tenant's batches in pages both ways, and shows them to nobody else, nor on /v1/batches", async () => {
    const ids: string[] = [];
    for (const name of ["a", "b", "c"]) {
      const { id } = await create({ [name]: ask(name, { model: "meta-llm" }) });
      ids.unshift(id);
      await ended(id);
    }
    const [newest = "", middle = "", oldest = ""] = ids;
    const page = await client.messages.batches.list({ limit: 2 });
    expect(page.data.map(({ id }) => id)).to.deep.equal([newest, middle]);
    expect([page.has_more, page.first_id, page.last_id]).to.deep.equal([true, newest, middle]);
    const all = (await Array.fromAsync(client.messages.batches.list({ limit: 2 }))).map(({ id }) => id);
    expect(all.slice(0, 3)).to.deep.equal(ids);
    const newer = await client.messages.batches.list({ before_id: oldest, limit: 1 });
    expect([newer.data.map(({ id }) => id), newer.has_more]).to.deep.equal([[middle], true]);
    const first = await client.messages.batches.list({ before_id: middle });
    expect([first.data.map(({ id }) => id), first.has_more]).to.deep.equal([[newest], false]);
    expect((await stranger.messages.batches.list()).data).to.deep.equal([]);
    expect((await api.get("/v1/batches")).at("data")).to.deep.equal([]);
    for (const calling of [
      () => stranger.messages.batches.retrieve(newest),
      () => stranger.get(`/v1/messages/batches/${newest}/results`),
      () => stranger.messages.batches.cancel(newest),
      () => stranger.messages.batches.delete(newest),
    ])
      expect((await failureOf(calling())).slice(0, 2)).to.deep.equal([404, "not_found_error"]);
  });

  it("stops what is not answered when it is cancelled, and deletes what has ended with all that it kept", async () => {
    const jobs = async () => (await api.get("/jobs?limit=200")).at("data") as { jobId: string; status: string }[];
    const others = new Set((await jobs()).map(({ jobId }) => jobId));
    const cancelledJobs = async () =>
      (await jobs()).filter(({ jobId, status }) => status === "cancelled" && !others.has(jobId)).length;
    upstream.setDuration(60_000);
    const made = await create({ one: ask("one"), two: ask("two") });
    await pollUntil(() => upstream.batches.at(-1)?.lines.some(({ question }) => question === "two"), {
      what: "its requests at the provider",
    });
    expect((await failureOf(client.messages.batches.delete(made.id)))[1]).to.equal("invalid_request_error");
    const canceling = await client.messages.batches.cancel(made.id);
    expect(canceling.processing_status).to.equal("canceling");
    expect(canceling.cancel_initiated_at).to.be.a("string");
    const batch = await ended(made.id);
    expect(batch.request_counts).to.deep.equal({ processing: 0, succeeded: 0, errored: 0, canceled: 2, expired: 0 });
    expect([...(await resultsOf(made.id)).values()]).to.deep.equal([{ type: "canceled" }, { type: "canceled" }]);
    expect((await failureOf(client.messages.batches.cancel(made.id)))[1]).to.equal("invalid_request_error");
    const stored = async () => Number((await api.get("/usage")).at("quotas.storedBytes.used"));
    const before = await stored();
    // The batch has ended when its requests have results; their jobs end just after. One whose submission was still under way
    // is gone.
    const open = async () =>
      (await jobs()).some(({ jobId, status }) => /queued|running/.test(status) && !others.has(jobId));
    await pollUntil(async () => !(await open()), { what: "the end of its requests' jobs" });
    expect(await client.messages.batches.delete(made.id)).to.deep.include({
      id: made.id,
      type: "message_batch_deleted",
    });
    expect((await failureOf(client.messages.batches.retrieve(made.id)))[0]).to.equal(404);
    expect((await failureOf(client.messages.batches.delete(made.id)))[0]).to.equal(404);
    expect(await stored()).to.be.below(before);
    expect(await cancelledJobs()).to.equal(0);
  });

  it("deletes the results of a batch once they are kept no longer", async () => {
    const { id } = await create({ one: ask("one", { model: "meta-llm" }) });
    expect((await ended(id)).archived_at).to.equal(null);
    const { files } = test.platform.store;
    const kept = await test.platform.batches.files.batch(viewerOf(await tenantOf(test)), id);
    const days = ((kept.expireAt?.getTime() ?? 0) - kept.createdAt.getTime()) / 86_400_000;
    expect(days).to.be.closeTo(29, 0.1);
    await files.changeBatch(kept, [kept.status], { $set: { expireAt: new Date() } });
    const archived = await pollUntil(
      async () => {
        const batch = await client.messages.batches.retrieve(id);
        return batch.archived_at === null ? null : batch;
      },
      { what: "the end of its results" },
    );
    expect(archived.request_counts.succeeded).to.equal(1);
    expect((await failureOf(client.get(`/v1/messages/batches/${id}/results`))).slice(0, 2)).to.deep.equal([
      404,
      "not_found_error",
    ]);
  });

  it("refuses wrong batches, and more than a tenant may have open", async () => {
    const twice = client.messages.batches.create({
      requests: ["same", "same"].map((custom_id) => ({ custom_id, params: ask("x") })),
    });
    const [status, type, message] = await failureOf(twice);
    expect([status, type]).to.deep.equal([400, "invalid_request_error"]);
    expect(message).to.include("requests[1].custom_id");
    expect((await failureOf(create({ "not/an/id": ask("x") })))[0]).to.equal(400);
    expect((await failureOf(create({})))[0]).to.equal(400);
    const unfinished = await failureOf(client.messages.batches.list({ after_id: "a", before_id: "b" }));
    expect(unfinished[0]).to.equal(400);
    upstream.setDuration(60_000);
    const open = await Promise.all(["1", "2", "3"].map((name) => create({ [name]: ask(name) })));
    const [tooMany, limited] = await failureOf(create({ more: ask("more") }));
    expect([tooMany, limited]).to.deep.equal([429, "rate_limit_error"]);
    const [early] = await failureOf(client.get(`/v1/messages/batches/${open[0]?.id}/results`));
    expect(early).to.equal(400);
    await Promise.all(open.map(({ id }) => client.messages.batches.cancel(id)));
    await Promise.all(open.map(({ id }) => ended(id)));
  });

  it("reports a request that the budget does not pay for as its own error", async () => {
    const tenantId = await tenantOf(test);
    await test.platform.gateway.setBudget(tenantId, (await spent()) / 1e9);
    const { id } = await create({ dear: ask("dear"), free: ask("free", { model: "meta-llm" }) });
    await ended(id);
    const results = await resultsOf(id);
    const costly = results.get("dear");
    expect(costly?.type === "errored" && costly.error.error.type).to.equal("billing_error");
    expect(results.get("free")?.type).to.equal("succeeded");
    await test.platform.gateway.setBudget(tenantId, null);
  });
});
