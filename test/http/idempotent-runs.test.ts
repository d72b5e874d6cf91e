import { expect } from "chai";
import { MongoNetworkError } from "mongodb";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import { type AgentUpstream, holdAnswer } from "../support/agent-upstream.ts";
import { type ApiClient, type ApiEvent, valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";

const said = [{ role: "user", content: "What is 4 + 2?" }];
const surfaces = {
  "/ai/chat": { messages: said },
  "/v1/chat/completions": { messages: said },
  "/v1/responses": { input: "What is 4 + 2?" },
  "/v1/messages": { messages: said, max_tokens: 100 },
};

describe("a chat with an agent that is repeated with its Idempotency-Key", function () {
  this.timeout(30_000);
  let harness: AgentHarness;
  let upstream: AgentUpstream;
  let member: ApiClient;
  let agentId: string;
  let model: string;
  before(async () => {
    harness = await openAgentHarness();
    ({ upstream, member } = harness);
  });
  beforeEach(async () => {
    upstream.play(() => ({ text: "It is 6." }));
    const about = { name: "Adder", model: harness.model, systemPrompt: "You add.", tools: [] };
    agentId = (await member.post("/agents", about)).string("agentId");
    model = `agent:${agentId}`;
  });
  after(() => harness.close());

  const keyOf = (key: string) => ({ "idempotency-key": key });
  /** The runs of the agent that have a job. */
  const jobs = async () => {
    const { data } = (await member.get("/jobs?kind=agent&limit=200")).body as {
      data: { about: Record<string, string> }[];
    };
    return data.flatMap(({ about }) => (about.agentId === agentId ? [about.runId] : []));
  };
  const streamed = async (path: string, body: object, key: string): Promise<ApiEvent[]> => {
    const { events } = await member.events("POST", path, {
      body: { ...body, model, stream: true },
      headers: keyOf(key),
    });
    return Array.fromAsync(events);
  };
  /** The store takes the next job, or does not, and its answer is lost. */
  const loseAnswer = (isTaken: boolean) => {
    const { jobs } = harness.platform.store;
    const { insert } = jobs;
    jobs.insert = async (record) => {
      jobs.insert = insert;
      if (isTaken) await insert(record);
      throw new MongoNetworkError("the answer is lost");
    };
  };
  const hold = () => holdAnswer(upstream, "It is 6.");

  for (const [path, body] of Object.entries(surfaces))
    for (const isTaken of path === "/v1/responses" ? [true, false] : [false]) // one that is taken waits for its queue
      it(`on ${path} has one run when the store ${isTaken ? "has" : "has not"} taken it and its answer was lost`, async () => {
        loseAnswer(isTaken);
        const key = { headers: keyOf(`lost ${path} ${isTaken}`) };
        const first = await member.post(path, { ...body, model }, key);
        expect(first.status, first.text).to.be.oneOf([503, 529]); // as each API says that it is unavailable
        const repeat = await member.post(path, { ...body, model }, key);
        expect(repeat.status, repeat.text).to.equal(200);
        expect(repeat.text).to.contain("It is 6.");
        expect(await jobs()).to.have.length(1);
        expect(upstream.calls).to.have.length(1);
      });

  it("has one run when that cannot be followed any more, and says so as without a key", async () => {
    const { asked, open } = hold();
    const { jobs: stored } = harness.platform.store;
    const { find } = stored;
    const body = { messages: said, model };
    const key = { headers: keyOf("cut") };
    const calling = member.post("/v1/chat/completions", body, key);
    await asked;
    stored.find = async () => {
      throw new MongoNetworkError("the store has gone");
    };
    open();
    const first = await calling.finally(() => {
      stored.find = find;
    });
    expect([first.status, first.headers.get("x-should-retry")], first.text).to.deep.equal([503, "false"]);
    const repeat = await member.post("/v1/chat/completions", body, key);
    expect(repeat.at("logId"), repeat.text).to.equal(first.at("error.details.runId"));
    expect(await jobs()).to.have.length(1);
  });

  it("has one run when its client left in between, also one that streams", async () => {
    const { asked, open } = hold();
    const leaving = new AbortController();
    const body = { messages: said, model };
    const { signal } = leaving;
    const calling = member.post("/ai/chat", body, { headers: keyOf("left"), signal }).catch(() => "left");
    await asked;
    leaving.abort();
    expect(await calling).to.equal("left");
    const repeating = pollUntil(async () => {
      const repeat = await member.post("/ai/chat", body, { headers: keyOf("left") });
      return repeat.at("error.code") === "idempotency_in_progress" ? undefined : repeat;
    });
    open();
    expect((await repeating).at("text")).to.equal("It is 6.");
    expect(await jobs()).to.deep.equal([(await repeating).at("logId")]);
  });

  for (const [path, body] of Object.entries(surfaces))
    it(`streams the same run on ${path} again, and another one after that has failed`, async () => {
      const first = await streamed(path, body, `stream ${path}`);
      const again = await streamed(path, body, `stream ${path}`);
      expect(JSON.stringify([first, again]).split("It is 6.").length).to.be.at.least(3);
      expect(await jobs()).to.have.length(1);
      upstream.play(() => ({ status: 400 }));
      expect(JSON.stringify(await streamed(path, body, `fails ${path}`))).to.not.contain("It is 6.");
      upstream.play(() => ({ text: "It is 6." }));
      expect(JSON.stringify(await streamed(path, body, `fails ${path}`))).to.contain("It is 6.");
      expect(await jobs()).to.have.length(3);
    });

  it("is one run for two that stream at the same time", async () => {
    const both = await Promise.all([1, 2].map(() => streamed("/ai/chat", { messages: said }, "both")));
    const [first, second] = both.map((events) => valueAt(events.at(-1)?.data, "logId"));
    expect([first, typeof first]).to.deep.equal([second, "string"]);
    expect(await jobs()).to.have.length(1);
  });

  it("is one response in the background, also one whose events were read", async () => {
    const idsOf = (events: readonly ApiEvent[]) => valueAt(events[0]?.data, "response.id");
    const body = { input: "Hi", background: true };
    const first = await streamed("/v1/responses", body, "background");
    const again = await streamed("/v1/responses", body, "background");
    expect([idsOf(again), typeof idsOf(again)]).to.deep.equal([idsOf(first), "string"]);
    expect(await jobs()).to.have.length(1);
  });

  it("has one run of a pattern when the store's answer was lost", async () => {
    loseAnswer(false);
    const body = { messages: said, model: "composite:critique:coding" };
    const key = { headers: keyOf("pattern") };
    expect((await member.post("/ai/chat", body, key)).status).to.equal(503);
    const repeat = await member.post("/ai/chat", body, key);
    expect(repeat.status, repeat.text).to.equal(200);
    expect((await member.get("/jobs?kind=composite")).at("data")).to.have.length(1);
  });
});
