import { expect } from "chai";
import OpenAI, { toFile } from "openai";
import {
  type CostlyProvider,
  SPENT_OUTPUT,
  SPENT_PROMPT,
  startCostlyProvider,
} from "../support/fake-provider/usage-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { callTool } from "../support/mcp-call.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

/** 1 USD a million tokens of prompt, 5 of answer; the longest answer has 128,000 tokens. */
const model = "gpt-6.1-terra";
const price = { input: 1_000, output: 5_000 };
/** The most that a call of these short prompts reserves, in USD; a little more for the prompt. */
const mostUsd = 0.64 + 0.002;
/** 0.13 USD a million tokens. */
const embedding = { model: "text-embedding-3-large", input: Array.from({ length: 10 }, () => "word ".repeat(1_600)) };
const embeddingPrice = 130;
/** Four whole answers are a dollar, so that most of these calls are more than there is money for. */
const CALLS = 64;
/** All of them with this limit cost more than there is, also at half the price. */
const ownLimit = { maxTokens: 10_000 };
/** A visitor has four places for calls at once, so each four calls come with a key of their own. */
const CALLS_A_WIDGET = 4;
const input = "Tell me a long story.";
const messages = [{ role: "user" as const, content: input }];
/** Rarely: these are polled all at once, and what they ask takes time from what they wait for. */
const patiently = { timeoutMs: 60_000, everyMs: 100 };

describe(`${CALLS} calls at once with 1 USD left`, function () {
  this.timeout(120_000);
  let upstream: CostlyProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let tenantId: string;
  before(async () => {
    upstream = await startCostlyProvider();
    test = await startPlatform({
      env: {
        OPENAI_API_KEY: "sk-platform-0123456789abcdef",
        OPENAI_BASE_URL: upstream.url,
        WIDGET_RATE_LIMIT_RPM: "100000",
        WIDGET_MAX_TOKENS: String(ownLimit.maxTokens),
        BATCH_COLLECT_MS: "100",
        BATCH_POLL_MS: "100",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.owner });
    tenantId = await tenantOf(test);
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const leftUsd = async () => {
    await test.platform.gateway.flush();
    return Number((await client.get("/usage")).at("budget.leftUsd"));
  };
  const leave = async (usd: number) => {
    await test.platform.gateway.setBudget(tenantId, 1_000);
    await test.platform.gateway.setBudget(tenantId, 1_000 - (await leftUsd()) + usd);
    expect(await leftUsd()).to.be.closeTo(usd, 1e-6);
  };
  /** What the provider will bill. */
  const billedUsd = () => {
    const nanoUsd = upstream.chats.map(
      ({ outputTokens, isBatched }) =>
        (SPENT_PROMPT * price.input + outputTokens * price.output) * (isBatched ? 0.5 : 1),
    );
    return nanoUsd.reduce((sum, one) => sum + one, 0) / 1e9;
  };
  const endOfJob = (jobId: string) =>
    pollUntil(async () => /completed|failed|stopped/.test((await client.get(`/jobs/${jobId}`)).string("status")), {
      ...patiently,
      what: "the end of the job",
    });
  const endOfResponse = (id: string) =>
    pollUntil(
      async () => /completed|failed|incomplete/.test((await client.get(`/v1/responses/${id}`)).string("status")),
      { ...patiently, what: "the end of the response" },
    );
  const openAi = () => new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.owner, maxRetries: 0 });
  const each = (call: () => Promise<unknown>) => async () => {
    await Promise.all(Array.from({ length: CALLS }, call));
  };
  const drain = async (path: string, body: object = { messages }) => {
    const response = await fetch(`${test.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${test.keys.owner}`, "content-type": "application/json" },
      body: JSON.stringify({ model, ...body, stream: true }),
    });
    await response.text();
    expect(response.status).to.be.oneOf([200, 402]);
  };

  const chatWithin = (limit: object) =>
    each(async () => {
      const accepted = await client.post("/ai/chat", { model, messages, prefer_async: true, ...limit });
      if (accepted.status === 202) await endOfJob(accepted.string("jobId"));
    });
  const sendFile = async (
    lines: number,
    limit: object,
    { endpoint, body }: { endpoint: "/v1/chat/completions" | "/v1/embeddings"; body: object } = {
      endpoint: "/v1/chat/completions",
      body: { model, messages },
    },
  ) => {
    const line = (at: number) =>
      JSON.stringify({ custom_id: `${at}`, method: "POST", url: endpoint, body: { ...body, ...limit } });
    const text = Array.from({ length: lines }, (_, at) => line(at)).join("\n");
    const file = await openAi().files.create({ file: await toFile(Buffer.from(text), "l.jsonl"), purpose: "batch" });
    const made = await openAi().batches.create({ input_file_id: file.id, endpoint, completion_window: "24h" });
    const atEnd = async () => {
      const batch = await openAi().batches.retrieve(made.id);
      return batch.status === "completed" && batch.request_counts;
    };
    return pollUntil(atEnd, { ...patiently, what: "the end of the batch" });
  };

  const ways: Record<string, () => Promise<unknown>> = {
    chats: each(() => client.post("/ai/chat", { model, messages })),
    "chats with a limit of their own": each(() => client.post("/ai/chat", { model, messages, ...ownLimit })),
    "streamed chats": each(() => drain("/ai/chat")),
    "chats by OpenAI's surface": each(() => client.post("/v1/chat/completions", { model, messages })),
    "streams by OpenAI's surface": each(() => drain("/v1/chat/completions")),
    responses: each(() => client.post("/v1/responses", { model, input })),
    "streamed responses": each(() => drain("/v1/responses", { input })),
    "responses in the background": each(async () => {
      const made = await client.post("/v1/responses", { model, input, background: true });
      if (made.status === 200) await endOfResponse(made.string("id"));
    }),
    "calls by Anthropic's surface": each(() => client.post("/v1/messages", { model, messages, max_tokens: 64_000 })),
    "streams by Anthropic's surface": each(() => drain("/v1/messages", { messages, max_tokens: 64_000 })),
    "lines of a batch of messages": async () => {
      const params = { model, messages, max_tokens: 64_000 };
      const requests = Array.from({ length: CALLS }, (_, at) => ({ custom_id: `${at}`, params }));
      const path = `/v1/messages/batches/${(await client.post("/v1/messages/batches", { requests })).string("id")}`;
      const atEnd = async () => (await client.get(path)).string("processing_status") === "ended";
      await pollUntil(atEnd, { ...patiently, what: "the end of the batch" });
    },
    "chats with an agent": async () => {
      const agent = await client.post("/agents", { name: "Teller", model, systemPrompt: "Tell long stories." });
      const named = `agent:${agent.string("agentId")}`;
      await each(() => client.post("/v1/chat/completions", { model: named, messages }))();
    },
    "calls of the chat tool": each(() => callTool(client, "svc_chat", { model, messages })),
    "chats by a widget key": async () => {
      const makeWidget = async () => {
        const { body } = await client.post("/ai/widget/key", {});
        return makeClient({ url: test.url, key: (body as { key: string }).key });
      };
      const widgets = await Promise.all(Array.from({ length: CALLS / CALLS_A_WIDGET }, makeWidget));
      let turn = 0;
      await each(async () => {
        const widget = widgets[turn++ % widgets.length] ?? client;
        const { status, text } = await widget.post("/ai/chat", { model, messages });
        if (status === 402) expect(text).not.to.match(/USD|limitUsd|leftUsd/);
      })();
    },
    "chats that may wait for a batch": chatWithin({}),
    "chats that may wait for a batch, with a limit of their own": chatWithin(ownLimit),
    "lines of a file": () => sendFile(CALLS, {}),
    "lines of a file, with a limit of their own": () => sendFile(CALLS, { max_tokens: ownLimit.maxTokens }),
    "runs of an agent": async () => {
      const agent = await client.post("/agents", { name: "Teller", model, systemPrompt: "Tell long stories." });
      await each(async () => {
        const run = await client.post(`/agents/${agent.string("agentId")}/run`, { input: "Begin." });
        if (run.status === 202) await endOfJob(run.string("jobId"));
      })();
    },
    "runs of a workflow": async () => {
      const steps = [{ type: "ai_completion", model, prompt: "Tell me a long story." }];
      const workflowId = (await client.post("/workflows", { name: "Stories", steps })).string("workflowId");
      await each(async () => {
        const started = await client.post(`/workflows/${workflowId}/execute`, {});
        const path = `/workflows/${workflowId}/runs/${started.string("runId")}`;
        const hasEnded = async () => /completed|failed/.test((await client.get(path)).string("status"));
        await pollUntil(hasEnded, { ...patiently, what: "the end of the run" });
      })();
    },
    "composite runs": each(async () => {
      const body = { pattern: "critique", profile: "coding", input: "Tell me.", models: [model, model] };
      const run = await client.post("/composite/execute", body);
      if (run.status === 202) await endOfJob(run.string("jobId"));
    }),
  };

  for (const [name, run] of Object.entries(ways)) {
    for (const isHonoured of [true, false]) {
      it(`cannot spend more: ${name}, with a provider that ${isHonoured ? "honours" : "ignores"} limits`, async () => {
        await leave(1);
        upstream.chats.length = 0;
        upstream.honoursLimits(isHonoured);
        await run();
        expect(upstream.chats, "some are served").not.to.have.lengthOf(0);
        const billed = billedUsd();
        expect(billed).to.be.at.most(isHonoured ? 1 : 1 + mostUsd);
        // A job may have ended before what it had reserved is given back.
        const isSettled = async () => Math.abs(1 - (await leftUsd()) - billed) < 1e-6;
        await pollUntil(isSettled, { what: `a ledger's sum of ${billed} USD` });
      });
    }
  }

  const embeddingWays: Record<string, () => Promise<unknown>> = {
    calls: each(() => client.post("/ai/embeddings", embedding)),
    "calls by OpenAI's surface": each(() => client.post("/v1/embeddings", embedding)),
    "lines of a file": () => sendFile(CALLS, {}, { endpoint: "/v1/embeddings", body: embedding }),
  };

  for (const [name, run] of Object.entries(embeddingWays)) {
    for (const isHonoured of [true, false]) {
      it(`cannot spend more on embeddings: ${name}, ${isHonoured ? "of words" : "whose every byte is a token"}`, async () => {
        await leave(0.05);
        upstream.embeddings.length = 0;
        upstream.honoursLimits(isHonoured);
        await run();
        const tokens = upstream.embeddings.reduce((sum, one) => sum + one, 0);
        const billed = (tokens * embeddingPrice) / 1e9;
        expect(upstream.embeddings, "there is money for four whole ones").to.have.length.of.at.least(4);
        expect(billed).to.be.at.most(0.05);
        const isSettled = async () => Math.abs(0.05 - (await leftUsd()) - billed) < 1e-6;
        await pollUntil(isSettled, { what: `a ledger's sum of ${billed} USD` });
      });
    }
  }

  it("serves them one after the other while there is money, and marks a limited answer as such", async () => {
    await leave(1);
    upstream.chats.length = 0;
    upstream.honoursLimits(true);
    const answers = await Promise.all(
      Array.from({ length: CALLS }, () => client.post("/ai/chat", { model, messages })),
    );
    const served = answers.filter(({ status }) => status === 200);
    const wholeUsd = (SPENT_OUTPUT * price.output) / 1e9;
    expect(served.length, "four whole answers are a dollar").to.be.within(Math.floor(1 / wholeUsd) - 1, 5);
    expect(answers.filter(({ status }) => status === 402)).to.have.lengthOf(CALLS - served.length);
    const reasons = served.map((answer) => answer.at("choices[0].finish_reason"));
    const limited = upstream.chats.filter(({ outputTokens }) => outputTokens < SPENT_OUTPUT);
    expect(reasons.filter((reason) => reason === "length")).to.have.lengthOf(limited.length);
  });

  it("serves the lines of a file one after the other while there is money", async () => {
    await leave(1);
    upstream.chats.length = 0;
    upstream.honoursLimits(true);
    const counts = await sendFile(6, { max_tokens: 2_000 });
    expect(counts, "three at a time are a dollar").to.deep.equal({ total: 6, completed: 6, failed: 0 });
  });

  it("answers a chat at once that a batch has no room for", async () => {
    await leave(0.1);
    const answer = await client.post("/ai/chat", { model, messages, prefer_async: true });
    expect([answer.status, answer.headers.get("x-svc-batch")]).to.deep.equal([200, "ineligible; reason=budget"]);
  });

  it("holds for a prompt of more tokens than were estimated", async () => {
    await leave(0.01);
    // 20,000 characters that no estimate by words counts right: each may be two tokens or more.
    const strange = [{ role: "user", content: "\u0e9b\u0683".repeat(5_000) }];
    const refused = await client.post("/ai/chat", { model, messages: strange });
    expect([refused.status, refused.at("error.code")]).to.deep.equal([402, "budget_exhausted"]);
    expect(refused.string("error.message")).to.match(/this call needs 0\.0\d+ USD/);
  });

  it("leaves the limits of a call without a budget as they are", async () => {
    await test.platform.gateway.setBudget(tenantId, null);
    upstream.chats.length = 0;
    await client.post("/ai/chat", { model, messages });
    expect(upstream.chats[0]?.request).to.deep.equal({ model, messages });
  });
});
