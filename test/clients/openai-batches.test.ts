import { expect } from "chai";
import OpenAI, { toFile } from "openai";
import { batchLogprob, type FakeBatches, startFakeBatches } from "../support/fake-provider/batch-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const line = (customId: string, content: string, more: object = {}) => ({
  custom_id: customId,
  method: "POST",
  url: "/v1/chat/completions",
  body: { model: "gpt-5.4-nano", messages: [{ role: "user", content }] },
  ...more,
});

type Job = { kind: string; about: Record<string, string>; title?: string; startedBy?: string };

describe("files and batches through the official openai client", function () {
  this.timeout(30_000);
  let upstream: FakeBatches;
  let test: TestPlatform;
  let openai: OpenAI;
  let stranger: OpenAI;
  let api: ApiClient;
  before(async () => {
    upstream = await startFakeBatches();
    test = await startPlatform({
      env: {
        OPENAI_API_KEY: "sk-platform-0123456789abcdef",
        OPENAI_BASE_URL: upstream.url,
        BATCH_COLLECT_MS: "150",
        BATCH_POLL_MS: "100",
      },
    });
    const clientOf = (apiKey: string) => new OpenAI({ baseURL: `${test.url}/v1`, apiKey, maxRetries: 0 });
    openai = clientOf(test.keys.member);
    stranger = clientOf(test.keys.stranger);
    api = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const upload = async (lines: readonly object[]) => {
    const text = lines.map((one) => JSON.stringify(one)).join("\n");
    return openai.files.create({ purpose: "batch", file: await toFile(Buffer.from(text), "requests.jsonl") });
  };
  const create = async (lines: readonly object[], endpoint: "/v1/chat/completions" | "/v1/embeddings") => {
    const file = await upload(lines);
    return openai.batches.create({
      input_file_id: file.id,
      endpoint,
      completion_window: "24h",
      metadata: { run: "nightly" },
    });
  };
  const ended = (id: string) =>
    pollUntil(
      async () => {
        const batch = await openai.batches.retrieve(id);
        return ["completed", "failed", "cancelled"].includes(batch.status) ? batch : null;
      },
      { timeoutMs: 15_000, what: "the end of the batch" },
    );
  const read = async (fileId: string | null | undefined) => {
    if (!fileId) throw new Error("there is no such file");
    const text = await (await openai.files.content(fileId)).text();
    return text
      .trim()
      .split("\n")
      .map((one) => JSON.parse(one));
  };
  const statusOf = (calling: Promise<unknown>) =>
    calling.then(
      () => 200,
      (error: unknown) => (error instanceof OpenAI.APIError ? error.status : error),
    );

  it("say of each answer how it ended, in whatever word of its provider", async () => {
    const words = ["stop", "model_length", "MAX_TOKENS", "safety", "odd_word", "error"];
    const { id } = await create(
      words.map((word) => line(word, `END:${word}`)),
      "/v1/chat/completions",
    );
    const batch = await ended(id);
    expect(batch.request_counts).to.include({ completed: 5, failed: 1 });
    const answers = (await read(batch.output_file_id)).map(({ custom_id, response }) => {
      const [choice] = response.body.choices;
      return [custom_id, choice.finish_reason, response.body.providerFinishReason];
    });
    expect(answers).to.deep.equal([
      ["stop", "stop", undefined],
      ["model_length", "length", undefined],
      ["MAX_TOKENS", "length", undefined],
      ["safety", "content_filter", undefined],
      ["odd_word", "length", "odd_word"],
    ]);
    const [failed] = await read(batch.error_file_id);
    expect([failed.custom_id, failed.error.code]).to.deep.equal(["error", "provider_failed"]);
  });

  it("say how likely the tokens were, where a line asks for it", async () => {
    const likely = { ...line("likely", "a lease").body, model: "gpt-4.1-mini", logprobs: true, top_logprobs: 1 };
    const lines = [line("plain", "a lease"), line("likely", "a lease", { body: likely })];
    const batch = await ended((await create(lines, "/v1/chat/completions")).id);
    const answers = (await read(batch.output_file_id)).map(({ custom_id, response }) => {
      return [custom_id, response.body.choices[0].logprobs?.content];
    });
    expect(answers).to.deep.equal([
      ["plain", undefined],
      ["likely", [batchLogprob]],
    ]);
  });

  it("keeps a file, lists it, gives it back, and deletes it", async () => {
    const file = await upload([line("a", "one")]);
    expect(file).to.include({ object: "file", purpose: "batch", filename: "requests.jsonl", status: "processed" });
    expect(await openai.files.retrieve(file.id)).to.deep.equal(file);
    expect((await Array.fromAsync(openai.files.list())).map(({ id }) => id)).to.include(file.id);
    expect(await read(file.id)).to.deep.equal([line("a", "one")]);
    expect(await statusOf(stranger.files.content(file.id)), "another tenant").to.equal(404);
    expect(await openai.files.delete(file.id)).to.deep.equal({ id: file.id, object: "file", deleted: true });
    expect(await statusOf(openai.files.retrieve(file.id))).to.equal(404);
  });

  it("answers each line in the files that OpenAI's clients expect", async () => {
    const made = await create(
      [
        line("first", "What is a lease?"),
        line("bad", "x", { body: { model: "gpt-5.4-nano", messages: [] } }),
        line("no-model", "x", { body: { model: "no-such", messages: [{ role: "user", content: "x" }] } }),
        line("refused", "FAIL this"),
        line("last", "What is a job?"),
      ],
      "/v1/chat/completions",
    );
    expect(made).to.deep.include({ object: "batch", status: "validating", metadata: { run: "nightly" } });
    const batch = await ended(made.id);
    expect(batch.status).to.equal("completed");
    expect(batch.request_counts).to.deep.equal({ total: 5, completed: 2, failed: 3 });
    expect(batch.completed_at).to.be.at.least(batch.created_at);
    const answers = await read(batch.output_file_id);
    expect(answers.map((one) => [one.custom_id, one.response.status_code, one.error])).to.deep.equal([
      ["first", 200, null],
      ["last", 200, null],
    ]);
    const completion: OpenAI.ChatCompletion = answers[0].response.body;
    expect(completion.object).to.equal("chat.completion");
    expect(completion.choices[0]?.message.content).to.equal("Re: What is a lease?");
    expect(completion.usage?.total_tokens).to.equal(1_100);
    const jobs = (await api.get("/jobs?limit=200")).at("data") as Job[]; // the client checked the shape
    const ofBatch = jobs.filter(({ about }) => about.batchId === made.id);
    expect(ofBatch.map(({ title }) => title)).to.include.members(["requests.jsonl"]);
    expect(new Set(ofBatch.map(({ startedBy }) => startedBy))).to.deep.equal(new Set(["member@test"]));
    const answered = jobs.filter(({ kind, title }) => kind === "completion" && title === "gpt-5.4-nano");
    expect(answered.map(({ startedBy }) => startedBy)).to.include("member@test");
    const errors = await read(batch.error_file_id);
    expect(errors.map((one) => [one.custom_id, one.error.code])).to.deep.equal([
      ["bad", "invalid_request"],
      ["no-model", "model_not_found"],
      ["refused", "provider_rejected"],
    ]);
    expect((await Array.fromAsync(openai.batches.list())).map(({ id }) => id)).to.include(made.id);
    expect(await statusOf(stranger.batches.retrieve(made.id)), "another tenant").to.equal(404);
  });

  it("embeds", async () => {
    const request = { method: "POST", url: "/v1/embeddings" };
    const made = await create(
      [
        { ...request, custom_id: "one", body: { model: "switchyard-offline-embedding", input: "a lease" } },
        { ...request, custom_id: "two", body: { input: ["a job", "a queue"] } },
        { ...request, custom_id: "three", body: { input: "a lease", encoding_format: "base64" } },
      ],
      "/v1/embeddings",
    );
    const batch = await ended(made.id);
    const answers = await read(batch.output_file_id);
    expect(answers.map((one) => one.response.body.data.length)).to.deep.equal([1, 2, 1]);
    const [plain, encoded] = [answers[0], answers[2]].map((one) => one.response.body.data[0].embedding);
    expect([...new Float32Array(new Uint8Array(Buffer.from(encoded, "base64")).buffer)]).to.deep.equal(plain);
    expect(batch.error_file_id).to.equal(null);
  });

  it("fails a file with invalid lines, and names the lines", async () => {
    const made = await create(
      [line("a", "one"), line("a", "two"), { nothing: true }, line("c", "three", { url: "/v1/embeddings" })],
      "/v1/chat/completions",
    );
    const batch = await ended(made.id);
    expect([batch.status, batch.output_file_id]).to.deep.equal(["failed", null]);
    expect(batch.errors?.data?.map(({ code, line: at }) => [code, at])).to.deep.equal([
      ["duplicate_custom_id", 2],
      ["invalid_json_line", 3],
      ["mismatched_url", 4],
    ]);
  });

  it("stops the unanswered lines when it is cancelled", async () => {
    upstream.setDuration(60_000);
    const made = await create([line("a", "one"), line("b", "two")], "/v1/chat/completions");
    await pollUntil(async () => (await openai.batches.retrieve(made.id)).status === "in_progress", {
      what: "its lines under way",
    });
    expect((await openai.batches.cancel(made.id)).status).to.equal("cancelling");
    const batch = await ended(made.id);
    expect([batch.status, batch.output_file_id]).to.deep.equal(["cancelled", null]);
    expect(await statusOf(openai.batches.cancel(made.id))).to.equal(409);
    upstream.setDuration(50);
  });

  it("refuses other purposes, windows and endpoints", async () => {
    const file = await toFile(Buffer.from("{}"), "x.jsonl");
    expect(await statusOf(openai.files.create({ purpose: "vision", file }))).to.equal(400);
    const { id } = await upload([line("a", "one")]);
    const other = { input_file_id: id, endpoint: "/v1/completions" as const, completion_window: "24h" as const };
    expect(await statusOf(openai.batches.create(other))).to.equal(400);
    const gone = { ...other, endpoint: "/v1/embeddings" as const, input_file_id: `file_${"0".repeat(26)}` };
    expect(await statusOf(openai.batches.create(gone))).to.equal(404);
  });
});
