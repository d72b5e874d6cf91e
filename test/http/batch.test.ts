import { expect } from "chai";
import { unavailable } from "../../src/lib/errors.ts";
import { newId } from "../../src/lib/ids.ts";
import {
  batchLogprob,
  batchThinking,
  batchUsage,
  type FakeBatches,
  startFakeBatches,
} from "../support/fake-provider/batch-server.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const models = { openai: "gpt-5.4-nano", anthropic: "claude-haiku-5-5" };
const env = {
  OPENAI_API_KEY: "sk-platform-0123456789abcdef",
  ANTHROPIC_API_KEY: "sk-ant-platform-0123456789abc",
  BATCH_COLLECT_MS: "150",
  BATCH_POLL_MS: "100",
  RECONCILE_EVERY_MS: "200",
};

describe("chats that may wait for a batch", () => {
  let upstream: FakeBatches;
  let test: TestPlatform;
  let client: ApiClient;
  before(async () => {
    upstream = await startFakeBatches();
    test = await startPlatform({
      env: { ...env, OPENAI_BASE_URL: upstream.url, ANTHROPIC_BASE_URL: upstream.origin, BATCH_MAX_LINES: "20" },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const ask = (
    model: string,
    content: string,
    { body = {}, ...options }: { body?: object; headers?: Record<string, string> } = {},
  ) => client.post("/ai/chat", { model, prefer_async: true, messages: [{ role: "user", content }], ...body }, options);
  const endOf = async (accepted: ApiResponse) => {
    expect(accepted.status).to.equal(202);
    const path = accepted.string("statusUrl");
    return pollUntil(
      async () => {
        const job = await client.get(path);
        return ["completed", "failed", "cancelled"].includes(job.string("status")) ? job : null;
      },
      { timeoutMs: 10_000, what: "the end of the job" },
    );
  };

  it("fail if the answer does not match the requested schema", async () => {
    const schema = { type: "object", properties: { at: { $ref: "#/$defs/at" } }, $defs: { at: { type: "string" } } };
    const format = { type: "json_schema", json_schema: { name: "lease", schema } };
    const accepted = await ask(models.openai, "When?", { body: { response_format: format } });
    const job = await endOf(accepted);
    expect([job.at("status"), job.at("error.code")]).to.deep.equal(["failed", "response_format_mismatch"]);
    const spent = (await client.get("/usage")).at("total.costUsd");
    expect(spent).to.be.greaterThan(0);
  });

  it("report the probability of tokens if that was requested", async () => {
    const job = await endOf(await ask("gpt-4.1-mini", "When?", { body: { logprobs: true, top_logprobs: 1 } }));
    expect(job.at("result.choices[0].logprobs.content")).to.deep.equal([batchLogprob]);
  });

  const ends: Record<keyof typeof models, [word: string, finishReason: string, kept?: string][]> = {
    openai: [
      ["model_length", "length"],
      ["MAX_TOKENS", "length"],
      ["Safety", "content_filter"],
      ["odd_word", "length", "odd_word"],
    ],
    anthropic: [
      ["max_tokens", "length"],
      ["model_context_window_exceeded", "length"],
      ["refusal", "content_filter"],
      ["odd_word", "length", "odd_word"],
    ],
  };
  for (const [provider, words] of Object.entries(ends)) {
    it(`report their finish reason for every word that ${provider} uses`, async () => {
      const model = models[provider as keyof typeof models];
      const asked = await Promise.all(words.map(([word]) => ask(model, `END:${word}`)));
      for (const [place, accepted] of asked.entries()) {
        const job = await endOf(accepted);
        const [word, finishReason, kept] = words[place] ?? [];
        expect(
          [job.at("status"), job.at("result.choices[0].finish_reason"), job.at("result.providerFinishReason")],
          word,
        ).to.deep.equal(["completed", finishReason, kept]);
      }
    });
  }

  it("fail if the provider reports a failure", async () => {
    const job = await endOf(await ask(models.openai, "END:error"));
    expect([job.at("status"), job.at("error.code")]).to.deep.equal(["failed", "provider_failed"]);
    expect(JSON.stringify(job.at("error"))).to.include("Re: END:error");
  });

  for (const [provider, model] of Object.entries(models)) {
    describe(`of ${provider}`, () => {
      it("answers 202 with a job, and the job with the chat's answer at half the price", async () => {
        const accepted = await ask(model, "What is a lease?");
        const shown = { title: model, startedBy: "member@test" };
        expect(accepted.body).to.include({ kind: "completion", status: "awaiting" });
        const listed = (await client.get("/jobs")).at("data") as { jobId: string }[]; // the client checked the shape
        expect(listed.find(({ jobId }) => jobId === accepted.string("jobId"))).to.include(shown);
        expect(accepted.headers.get("location")).to.equal(accepted.string("statusUrl"));
        const job = await endOf(accepted);
        expect(job.at("status")).to.equal("completed");
        const atOnce = (await client.get("/ai/models")).at("models") as {
          id: string;
          inputCostPer1k: number;
          outputCostPer1k: number;
        }[];
        const price = atOnce.find(({ id }) => id === model);
        if (!price) throw new Error(`${model} is not listed`);
        const full = (batchUsage.input * price.inputCostPer1k + batchUsage.output * price.outputCostPer1k) / 1_000;
        expect(job.at("result.text")).to.equal("Re: What is a lease?");
        expect(job.at("result.choices[0].message.content")).to.equal("Re: What is a lease?");
        expect(job.at("result.inputTokens")).to.equal(batchUsage.input);
        expect(job.at("result.model")).to.equal(model);
        expect(job.at("result.costUsd")).to.be.closeTo(full / 2, 1e-9);
        const log = await client.get(`/ai/logs/${job.string("result.logId")}`);
        expect(log.at("costUsd")).to.equal(job.at("result.costUsd"));
      });

      it("adds the fields of x-svc-debug to the job's result", async () => {
        const job = await endOf(await ask(model, "What is a lease?", { headers: { "x-svc-debug": "true" } }));
        expect(job.at("result._preprocessing.routing")).to.deep.include({ requested: model, model, provider });
        const plain = await endOf(await ask(model, "What is a lease?"));
        expect(plain.at("result")).to.not.have.property("_preprocessing");
      });

      it("gives each item of a batch its own end: an answer, an error, or another batch", async () => {
        const questions = ["one", "FAIL two", "EXPIRE-ONCE three", "EXPIRE four", "five"];
        const jobs = await Promise.all((await Promise.all(questions.map((text) => ask(model, text)))).map(endOf));
        expect(jobs.map((job) => job.at("result.text") ?? job.at("error.code"))).to.deep.equal([
          "Re: one",
          "provider_rejected",
          "Re: EXPIRE-ONCE three",
          "provider_failed",
          "Re: five",
        ]);
        expect(jobs[1]?.at("error.details.message")).to.equal("The prompt was refused.");
        expect(jobs[3]?.at("error.details.code")).to.equal("batch_expired");
        const times = jobs.map((job) => upstream.submitted.get(job.string("jobId")));
        expect(times, "how often each was submitted").to.deep.equal([1, 1, 2, 2, 1]);
      });

      it("finds its batch again when the provider's response was lost", async () => {
        const before = upstream.batches.length;
        let losses = 0;
        upstream.onSubmit((batch) => {
          if (batch.provider !== provider || losses > 0) return true;
          losses += 1;
          return false;
        });
        const job = await endOf(await ask(model, "lost and found"));
        expect([job.at("result.text"), losses]).to.deep.equal(["Re: lost and found", 1]);
        expect(upstream.batches.length - before, "submitted batches").to.equal(1);
      });
    });
  }

  it("carry Claude's reasoning in both directions, and mark nothing for its prompt cache", async () => {
    const first = (await endOf(await ask(models.anthropic, "THINK one"))).at("result.choices[0].message");
    const turns = [{ role: "user", content: "THINK one" }, first, { role: "user", content: "two" }];
    const job = await endOf(await ask(models.anthropic, "", { body: { messages: turns } }));
    expect(job.at("result.text")).to.equal("Re: two");
    const sent = upstream.batches.at(-1)?.lines[0]?.messages;
    const answered = [batchThinking, { type: "text", text: "Re: THINK one" }];
    expect(JSON.stringify(sent?.map(({ content }) => content))).to.equal(
      JSON.stringify(["THINK one", answered, "two"]),
    );
  });

  it("puts chats that need OpenAI's Responses API into a batch of their own", async () => {
    const before = upstream.batches.length;
    const model = "gpt-6-luna";
    const tools = [{ type: "function", function: { name: "find", parameters: { type: "object" } } }];
    const ask = (content: string, more: object = {}) =>
      client.post("/ai/chat", { model, prefer_async: true, messages: [{ role: "user", content }], ...more });
    const accepted = await Promise.all([
      ask("one"),
      ask("two", { tools }),
      ask("three", { tools }),
      ask("FAIL", { tools }),
    ]);
    const jobs = await Promise.all(accepted.map(endOf));
    expect(jobs.map((job) => job.at("result.text") ?? job.at("error.code"))).to.deep.equal([
      "Re: one",
      "Re: two",
      "Re: three",
      "provider_rejected",
    ]);
    expect(jobs[1]?.at("result.costUsd")).to.equal(jobs[0]?.at("result.costUsd"));
    const made = upstream.batches.slice(before).map(({ lines }) => [...new Set(lines.map(({ url }) => url))]);
    expect(made).to.have.deep.members([["/v1/chat/completions"], ["/v1/responses"]]);
  });

  it("runs the platform's own model through the queue too", async () => {
    const body = {
      prefer_async: true,
      systemPrompt: "The ferry to Aland leaves at seven.",
      messages: [{ role: "user", content: "When does the ferry leave?" }],
    };
    const job = await endOf(await client.post("/ai/chat", body));
    expect(job.at("result.text")).to.contain("seven");
    expect(job.at("result.costUsd")).to.equal(0);
    const waited = await client.post("/ai/chat", body, { headers: { prefer: "wait=60" } });
    expect([waited.status, waited.headers.get("preference-applied")], waited.text).to.deep.equal([200, "wait=60"]);
    expect(waited.at("text")).to.contain("seven");
  });

  it("submits a full batch at once, and never more in one than it holds", async () => {
    const before = upstream.batches.length;
    const accepted = await Promise.all(Array.from({ length: 45 }, (_, n) => ask(models.openai, `number ${n}`)));
    const jobs = await Promise.all(accepted.map(endOf));
    expect(jobs.map((job) => job.at("result.text"))).to.deep.equal(jobs.map((_, n) => `Re: number ${n}`));
    const sizes = upstream.batches.slice(before).map(({ lines }) => lines.length);
    expect(Math.max(...sizes)).to.be.at.most(20);
    expect(sizes.reduce((sum, size) => sum + size, 0)).to.equal(45);
  });

  it("removes a cancelled job before the batch is submitted, and drops its answer afterwards", async () => {
    const early = await ask(models.openai, "cancelled early");
    expect((await client.post(`/jobs/${early.string("jobId")}/cancel`)).status).to.equal(200);
    const neighbour = await endOf(await ask(models.openai, "neighbour"));
    expect(neighbour.at("status")).to.equal("completed");
    expect(upstream.submitted.has(early.string("jobId"))).to.equal(false);
    expect((await endOf(early)).at("status")).to.equal("cancelled");

    upstream.setDuration(600);
    const late = await ask(models.openai, "cancelled late");
    await pollUntil(() => upstream.submitted.has(late.string("jobId")), { what: "the submission" });
    expect((await client.post(`/jobs/${late.string("jobId")}/cancel`)).status).to.equal(200);
    upstream.setDuration(50);
    const tenantId = await tenantOf(test);
    const item = () => test.platform.store.batches.item(tenantId, late.string("jobId"));
    await pollUntil(async () => (await item())?.state === "done", { what: "the end of the item" });
    expect((await endOf(late)).at("result"), "its answer is dropped").to.equal(undefined);
    const log = await client.get(`/ai/logs/${(await item())?.logId}`);
    expect(log.at("costUsd"), "but it was served").to.be.above(0);
  });

  it("says why a chat is answered at once", async () => {
    const streamed = await client.events("POST", "/ai/chat", {
      body: { prefer_async: true, stream: true, messages: [{ role: "user", content: "hello" }] },
    });
    expect(streamed.headers.get("x-svc-batch")).to.equal("ineligible; reason=streamed");
    await Array.fromAsync(streamed.events);
  });

  it("a repeat with the same idempotency key is the same job", async () => {
    const headers = { "idempotency-key": "batch-1" };
    const first = await ask(models.openai, "only once", { headers });
    const second = await ask(models.openai, "only once", { headers });
    expect(second.string("jobId")).to.equal(first.string("jobId"));
    expect((await endOf(first)).at("status")).to.equal("completed");
  });

  describe("while a part is unavailable", () => {
    const textOf = async (jobId: string) => {
      const job = await pollUntil(
        async () => {
          const view = await client.get(`/jobs/${jobId}`);
          return view.at("status") === "completed" ? view : null;
        },
        { what: "the job's completion" },
      );
      return job.at("result.text");
    };

    it("are accepted, and answered once, when only the queue is unavailable", async () => {
      const { queues } = test.platform;
      const { add } = queues;
      queues.add = async () => {
        throw unavailable("The queue");
      };
      try {
        // The full batch is closed and submitted to the queue by the call itself.
        const all = await Promise.all(Array.from({ length: 20 }, (_, n) => ask(models.openai, `away ${n}`)));
        expect(all.map(({ status }) => status)).to.deep.equal(all.map(() => 202));
        queues.add = add;
        const texts = await Promise.all(all.map((one) => textOf(one.string("jobId"))));
        expect(texts).to.deep.equal(all.map((_, n) => `Re: away ${n}`));
        expect(all.map((one) => upstream.submitted.get(one.string("jobId")))).to.deep.equal(all.map(() => 1));
      } finally {
        queues.add = add;
      }
    });

    it("are answered by another batch if a late worker put them into one that has ended", async () => {
      const tenantId = await tenantOf(test);
      const { store } = test.platform;
      const first = await endOf(await ask(models.openai, "of the batch that has ended"));
      const ended = (await store.batches.item(tenantId, first.string("jobId")))?.batchId ?? "";
      await pollUntil(async () => (await store.batches.batch(ended))?.state === "ended", { what: "the batch's end" });
      const late = await ask(models.openai, "put in late");
      const jobId = late.string("jobId");
      await store.batches.moveItem(jobId, ["waiting"], { state: "batched", batchId: ended });
      expect(await textOf(jobId)).to.equal("Re: put in late");
      expect(upstream.submitted.get(jobId)).to.equal(1);
    });

    it("are answered when the call is repeated after their item without a job was dropped", async () => {
      const tenantId = await tenantOf(test);
      const { batches, gateway, store } = test.platform;
      const first = await ask(models.openai, "cut and repeated");
      const item = await store.batches.item(tenantId, first.string("jobId"));
      if (!item) throw new Error("there is no item");
      const jobId = newId("job");
      await store.batches.insertItem({ ...item, _id: jobId, logId: newId("log"), state: "cancelled" });
      const signal = new AbortController().signal;
      const caller = { tenantId, keyId: item.keyId, surface: "api", signal };
      const chat = { model: models.openai, messages: [{ role: "user" as const, content: "cut and repeated" }] };
      await batches.chats.accept(caller, await gateway.plan(caller, chat), { jobId });
      expect(await textOf(jobId)).to.equal("Re: cut and repeated");
      expect(upstream.submitted.get(jobId)).to.equal(1);
      expect(await textOf(first.string("jobId"))).to.equal("Re: cut and repeated");
    });
  });

  it("is counted to the budget by its cost", async () => {
    const tenantId = await tenantOf(test);
    const { gateway } = test.platform;
    await gateway.setBudget(tenantId, 1_000);
    const before = (await gateway.budget(tenantId))?.leftUsd ?? 0;
    const job = await endOf(await ask(models.openai, "within the budget"));
    const cost = Number(job.at("result.costUsd"));
    await pollUntil(async () => Math.abs(before - ((await gateway.budget(tenantId))?.leftUsd ?? 0) - cost) < 1e-8, {
      what: "the settlement",
    });
    await gateway.setBudget(tenantId, 0);
    expect((await ask(models.openai, "no money")).status).to.equal(402);
    await gateway.setBudget(tenantId, null);
  });
});
