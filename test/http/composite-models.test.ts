import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { hostPid } from "../support/service-pids.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const CHAT = "/v1/chat/completions";
const messages = [{ role: "user", content: "What is 4 + 2?" }];

describe("chats whose runs no worker takes", () => {
  let test: TestPlatform;
  let member: ApiClient;
  before(async () => {
    test = await startPlatform({ workers: false, env: { RUN_WAIT_MS: "100", MAX_OPEN_JOBS: "2" } });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  it("end with an error that names the run, which goes on; and at the quota of open jobs", async () => {
    const body = { model: "composite:critique:coding", messages };
    const headers = { "idempotency-key": "overdue" };
    const answer = await member.post(CHAT, body, { headers });
    expect([answer.status, answer.at("error.code")], answer.text).to.deep.equal([504, "timeout"]);
    expect(answer.headers.get("x-should-retry")).to.equal("false");
    const id = answer.string("error.details.executionId");
    expect(answer.string("error.message")).to.contain(`${id} did not end within 0.1 s.`);
    expect((await member.get(`/composite/executions/${id}`)).at("status")).to.equal("queued");
    const again = await member.post(CHAT, body, { headers });
    expect([again.status, again.at("error.details.executionId")], again.text).to.deep.equal([504, id]);
    const { events } = await member.events("POST", CHAT, { body: { ...body, stream: true } });
    const last = (await Array.fromAsync(events)).at(-1);
    expect(valueAt(last?.data, "error.code")).to.equal("timeout");
    const refused = await member.post(CHAT, body);
    expect([refused.status, refused.at("error.code")], refused.text).to.deep.equal([429, "too_many_concurrent"]);
    expect((await member.get("/jobs?kind=composite")).at("data")).to.have.length(2);
  });
});

describe("chats whose runs are accepted before the store is unavailable", function () {
  this.timeout(30_000);
  it("end with an error that names the run, and that no client repeats by itself", async function () {
    if (process.env.MONGODB_URL) return skipTest(this, "only the embedded store can be frozen");
    const test = await startPlatform({ services: "private", workers: false, env: { STORE_TIMEOUT_MS: "500" } });
    try {
      const member = makeClient({ url: test.url, key: test.keys.member });
      const calling = member.post(CHAT, { model: "composite:critique:coding", messages });
      const jobs = () => member.get("/jobs?kind=composite");
      const id = await pollUntil(async () => (await jobs()).at("data[0].jobId"));
      const pid = await hostPid(test.platform.config.dataDir);
      process.kill(pid, "SIGSTOP");
      const answer = await calling.finally(() => process.kill(pid, "SIGCONT"));
      expect([answer.status, answer.at("error.code")], answer.text).to.deep.equal([503, "unavailable"]);
      expect(answer.at("error.details.jobId")).to.equal(id);
      expect(answer.headers.get("x-should-retry")).to.equal("false");
    } finally {
      await test.close();
    }
  });
});

describe("a composite run whose models are cut", () => {
  let upstream: FakeProvider;
  let test: TestPlatform;
  let member: ApiClient;
  before(async () => {
    upstream = await startFakeProvider();
    test = await startPlatform({ env: { EDGE_BASE_URL: upstream.url, EDGE_MODEL: "small" } });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const draft = { pieces: ["A first try."] };
  const critique = { pieces: ["It is short."] };
  const revision = { pieces: ["A second try."] };
  for (const [finishReason, ended] of [
    ["length", "length"],
    ["model_length", "length"],
    ["content_filter", "content_filter"],
    ["a-word-of-tomorrow", "length"],
  ] as const) {
    it(`says how its answer ended: ${finishReason}`, async () => {
      upstream.next(draft, critique, { ...revision, finishReason });
      const answer = await member.post(CHAT, { model: "composite:critique:coding", messages });
      expect(answer.at("choices[0].finish_reason"), answer.text).to.equal(ended);
      const trace = await member.get(`/composite/executions/${answer.string("logId")}`);
      expect(trace.at("result.finishReason")).to.equal(ended);
      expect(trace.at("result.warnings[0]")).to.contain(ended);
      expect(trace.at("steps[2].finishReason")).to.equal(ended);
    });
  }

  it("answers whole if only a call on the way was cut, and as the draft did if that is the answer", async () => {
    upstream.next(draft, { ...critique, finishReason: "length" }, revision);
    const whole = await member.post(CHAT, { model: "composite:critique:coding", messages });
    expect(whole.at("choices[0].finish_reason"), whole.text).to.equal("stop");
    upstream.next({ ...draft, finishReason: "length" }, { pieces: [] }, revision);
    const fromDraft = await member.post(CHAT, { model: "composite:critique:coding", messages });
    expect(fromDraft.at("choices[0].message.content")).to.equal("A first try.");
    expect(fromDraft.at("choices[0].finish_reason")).to.equal("length");
  });
});

describe("chats with a composite pattern in the place of a model", () => {
  let test: TestPlatform;
  let member: ApiClient;
  before(async () => {
    test = await startPlatform();
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());
  const question = "Sessions live in the memory of one server. Why are they lost?";

  it("give the answer of a durable run, and name its model calls as they end", async () => {
    const ask = { model: "composite:critique", messages: [{ role: "user", content: question }] };
    const answer = await member.post(CHAT, ask);
    expect(answer.status, answer.text).to.equal(200);
    const trace = await member.get(`/composite/executions/${answer.string("logId")}`);
    expect(trace.body).to.include({ pattern: "critique", profile: "content", input: question, status: "completed" });
    expect(answer.at("choices[0].message.content")).to.equal(trace.at("result.output"));
    expect(answer.at("usage.total_tokens")).to.equal(trace.at("result.tokensUsed"));
    expect(answer.at("usage.completion_tokens")).to.equal(trace.at("result.outputTokens")).and.be.above(0);
    const steps = answer.string("choices[0].message.reasoning_content").trimEnd().split("\n");
    expect(steps).to.have.length(3);
    expect(steps[0]).to.match(/^\w+: switchyard-offline$/);
    const { events } = await member.events("POST", CHAT, { body: { ...ask, stream: true } });
    const deltas = (await Array.fromAsync(events)).map(({ data }) => valueAt(data, "choices[0].delta"));
    const thought = deltas.filter((delta) => valueAt(delta, "reasoning_content") !== undefined);
    expect(thought).to.have.length(3);
    expect(deltas.find((delta) => valueAt(delta, "content"))).to.deep.equal({ content: trace.at("result.output") });
  });

  it("put what was said before into the one text of the run", async () => {
    const body = {
      model: "composite:chain-of-thought:support",
      instructions: "Be brief.",
      input: [
        { role: "user", content: "Who are you?" },
        { role: "assistant", content: "A desk." },
        { role: "user", content: question },
      ],
    };
    const answer = await member.post("/v1/responses", body);
    expect(answer.status, answer.text).to.equal(200);
    const trace = await member.get(`/composite/executions/${answer.string("logId")}`);
    expect(trace.at("input")).to.equal(
      `Instructions:\nBe brief.\n\nThe conversation so far:\n\nUser: Who are you?\n\nAssistant: A desk.\n\nUser: ${question}`,
    );
    expect((await member.get(`/v1/responses/${answer.string("id")}`)).status).to.equal(200);
  });

  it("keep nothing of a regulated profile but the answer", async () => {
    const body = { model: "composite:critique:healthcare", instructions: "Mind the marker-4711.", input: question };
    const answer = await member.post("/v1/responses", body, { headers: { "idempotency-key": "regulated" } });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.string("output[1].content[0].text")).to.contain("generated by AI models");
    expect([answer.at("store"), answer.at("instructions")]).to.deep.equal([false, null]);
    expect(answer.headers.get("x-svc-ignored")).to.equal("store");
    expect((await member.get(`/v1/responses/${answer.string("id")}`)).status).to.equal(404);
    const trace = await member.get(`/composite/executions/${answer.string("logId")}`);
    expect(trace.at("status")).to.equal("completed");
    expect(trace.text).not.to.contain("marker-4711");
    expect(trace.at("input")).to.equal(undefined);
  });

  for (const model of ["composite:", "composite:poem", "composite:debate:toys", "composite:debate:coding:x"]) {
    it(`know no ${model}`, async () => {
      for (const stream of [false, true]) {
        const answer = await member.post(CHAT, { model, stream, messages });
        expect([answer.status, answer.at("error.code"), answer.at("error.param")], answer.text).to.deep.equal([
          404,
          "model_not_found",
          "model",
        ]);
        expect(answer.string("error.message")).to.contain("chain-of-thought");
      }
    });
  }
});
