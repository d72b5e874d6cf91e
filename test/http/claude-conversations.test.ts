import { expect } from "chai";
import { type AgentUpstream, startAgentUpstream } from "../support/agent-upstream.ts";
import {
  blocksOf,
  type ClaudeCall,
  type ClaudeUpstream,
  chargeOf,
  startClaudeUpstream,
  type WireBlock,
} from "../support/claude-upstream.ts";
import { type ApiClient, type ApiEvent, makeClient } from "../support/http-client.ts";
import { linkedPdf, linkedPicture, pdf, pictureOf } from "../support/media.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const model = "claude-opus-5-5";
/** As Anthropic's price list has them. */
const price = { input: 4_000, cached: 200, cacheWrite: 5_000, output: 20_000 };
const instructions = "You keep the berths of a harbour, and you count with care. ".repeat(80);
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];

/** What Claude says before it calls its tools: reasoning of every kind, with what only Anthropic can read. */
const thought = (turn: number): WireBlock[] => [
  { type: "thinking", thinking: `Überlegung ${turn} `, signature: `c2lnbmVk+/${turn}==` },
  ...(turn === 2 ? [{ type: "redacted_thinking", data: "c2VjcmV0+/==" }] : []),
  ...(turn === 3
    ? [{ type: "thinking", thinking: "", signature: "bm90ZQ==" }]
    : [{ type: "text", text: `Step ${turn}.` }]),
];
const call = (turn: number, name: string, input: object, place = 1): WireBlock => {
  return { type: "tool_use", id: `toolu_${turn}_${place}`, name, input };
};
const answer: WireBlock[] = [
  { type: "thinking", thinking: "Enough. ", signature: "ZW5k" },
  { type: "text", text: "Nine berths." },
];

const marksOf = ({ raw }: ClaudeCall) => raw.split('"cache_control"').length - 1;
const answered = (calls: readonly ClaudeCall[]) => calls.flatMap(({ usage }) => usage ?? []);
/** The assistant's turns of a request, as they went over the wire. */
const turnsOf = ({ body }: ClaudeCall) =>
  body.messages.flatMap((turn) => (turn.role === "assistant" ? [JSON.stringify(blocksOf(turn))] : []));

describe("conversations with Claude", function () {
  this.timeout(30_000);
  let upstream: ClaudeUpstream;
  let openAi: AgentUpstream;
  let test: TestPlatform;
  let client: ApiClient;
  before(async () => {
    [upstream, openAi] = await Promise.all([startClaudeUpstream(), startAgentUpstream()]);
    test = await startPlatform({
      env: {
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789abc",
        ANTHROPIC_BASE_URL: upstream.origin,
        OPENAI_API_KEY: "sk-test",
        OPENAI_BASE_URL: openAi.url,
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await test.close();
    await upstream.close();
    await openAi.close();
  });

  const ledger = async () => {
    await test.platform.gateway.flush();
    return Math.round(Number((await client.get("/usage")).at("total.costUsd")) * 1e9);
  };

  it("cost what the provider's invoice says over ten iterations of an agent, which read their start from the cache", async () => {
    const spentBefore = await ledger();
    const turns = Array.from({ length: 9 }, (_, place) => place + 1).map((turn) => {
      const calls = turn === 4 ? [1, 2] : [1];
      return [
        ...thought(turn),
        ...calls.map((place) => call(turn, "calculator", { expression: `${turn} + 0` }, place)),
      ];
    });
    let isOverloaded = false;
    upstream.play(({ turn }) => {
      isOverloaded = turn === 5 && !isOverloaded;
      return isOverloaded ? { status: 529 } : { content: turns[turn - 1] ?? answer };
    });
    const agent = { name: "Harbour", model, systemPrompt: instructions, tools: [{ type: "calculator" }] };
    const agentId = (await client.post("/agents", agent)).string("agentId");
    const run = await client.post(`/agents/${agentId}/run`, { input: "How many berths are there?" });
    expect([run.status, run.at("output"), run.at("steps")]).to.deep.equal([200, "Nine berths.", 10]);

    const { calls } = upstream;
    expect(calls).to.have.length(11);
    for (const one of calls) expect(marksOf(one)).to.be.within(1, 4);
    const usages = answered(calls);
    for (const [place, usage] of usages.entries()) {
      const before = usages[place - 1];
      const known = before ? before.cache_read_input_tokens + before.cache_creation_input_tokens : 0;
      expect(usage.cache_read_input_tokens, `call ${place + 1}`).to.equal(known);
      expect(usage.cache_creation_input_tokens, `call ${place + 1}`).to.be.above(0);
    }
    const last = calls.at(-1);
    expect(last && turnsOf(last)).to.deep.equal(turns.map((blocks) => JSON.stringify(blocks)));

    const invoice = upstream.invoice(price);
    expect((await ledger()) - spentBefore).to.equal(invoice);
    expect(run.at("costUsd")).to.be.closeTo(invoice / 1e9, 1e-12);
    const auditLog = await client.get(`/agents/${agentId}/runs/${run.string("runId")}`);
    expect(auditLog.at("integrity.verified")).to.equal(true);
    expect(auditLog.text).not.to.match(/signature|c2lnbmVk|c2VjcmV0/);
    const costs: unknown[] = [];
    for (const step of usages.keys())
      costs.push((await client.get(`/ai/logs/${auditLog.string(`steps[${step}].logId`)}`)).at("costUsd"));
    const charges = usages.map((usage) => chargeOf(usage, price));
    expect(costs.map((usd) => Math.round(Number(usd) * 1e9))).to.deep.equal(charges);
  });

  for (const isStreamed of [false, true]) {
    const form = isStreamed ? "streamed" : "as JSON";
    it(`send reasoning back byte for byte over three turns with tools, ${form}, at the invoice's cost`, async () => {
      const spentBefore = await ledger();
      const turns = [1, 2, 3].map((turn) => [...thought(turn), call(turn, "look", { at: turn })]);
      upstream.play(({ turn }) => ({ content: turns[turn - 1] ?? answer }));
      const messages: object[] = [
        { role: "system", content: instructions },
        { role: "user", content: "How many berths are there?" },
      ];
      for (const turn of [1, 2, 3, 4]) {
        const message = await say(messages, isStreamed);
        messages.push(message, { role: "tool", tool_call_id: `toolu_${turn}_1`, content: "three" });
      }
      const { calls } = upstream;
      expect(calls.map(marksOf)).to.deep.equal([2, 3, 3, 3]);
      const [, , third, last] = answered(calls);
      expect(third?.cache_read_input_tokens).to.be.above(512);
      expect(last?.cache_read_input_tokens).to.be.above(third?.cache_read_input_tokens ?? 0);
      const sent = calls.at(-1);
      expect(sent && turnsOf(sent)).to.deep.equal(turns.map((blocks) => JSON.stringify(blocks)));
      expect((await ledger()) - spentBefore).to.equal(upstream.invoice(price));
    });
  }

  /** The assistant's message of an answer, as a client sends it back. */
  async function say(messages: object[], isStreamed: boolean): Promise<object> {
    const body = { model, messages, tools };
    if (!isStreamed) {
      const response = await client.post("/v1/chat/completions", body);
      expect(response.status, response.text).to.equal(200);
      return Object(response.at("choices[0].message"));
    }
    const opened = await client.events("POST", "/ai/chat", { body: { ...body, stream: true } });
    const events: ApiEvent[] = await Array.fromAsync(opened.events);
    const deltas = events.map(({ data }) => Object(data).delta ?? {});
    return {
      role: "assistant",
      content: deltas.map(({ content = "" }) => content).join(""),
      tool_calls: Object(events.at(-1)?.data).toolCalls,
      reasoning_details: deltas.flatMap(({ reasoning_details: details = [] }) => details),
    };
  }

  it("cost what the invoice says when a stream breaks off, and when a call is tried again", async () => {
    const spentBefore = await ledger();
    const messages = [
      { role: "system", content: instructions },
      { role: "user", content: "How many berths are there?" },
      { role: "assistant", content: "Let me see." },
      { role: "user", content: "Well?" },
    ];
    const refusals = [529, 529];
    upstream.play(() => {
      const status = refusals.pop();
      return status === undefined ? { content: answer } : { status };
    });
    expect((await client.post("/ai/chat", { model, messages })).status).to.equal(200);
    const { calls } = upstream;
    expect(calls).to.have.length(3);
    const [written] = answered(calls);
    expect(written?.cache_creation_input_tokens).to.be.above(512);
    expect((await ledger()) - spentBefore).to.equal(upstream.invoice(price));

    const spentOnJson = await ledger();
    upstream.play(() => ({ content: answer, breaksAfter: 2 }));
    for (const _ of [1, 2]) {
      const { events } = await client.events("POST", "/ai/chat", { body: { model, messages, stream: true } });
      const all = await Array.fromAsync(events);
      expect(Object(all.at(-1)?.data).error.code).to.equal("provider_failed");
    }
    const [first, second] = answered(upstream.calls);
    expect([first?.cache_read_input_tokens, second?.cache_creation_input_tokens]).to.deep.equal([0, 0]);
    expect(second?.cache_read_input_tokens).to.equal(first?.cache_creation_input_tokens);
    expect((await ledger()) - spentOnJson).to.equal(upstream.invoice(price));
  });

  it("carry pictures and files of users and tools, and set no breakpoint for a single question", async () => {
    const picture = pictureOf(8, 8);
    const image = (url: string) => ({ type: "image_url", image_url: { url } });
    const file = (data: string) => ({ type: "file", file: { filename: "a.pdf", file_data: data } });
    const content = [image(picture), image(linkedPicture), file(pdf), file(linkedPdf)];
    const blocks = [
      { type: "image", source: { type: "base64", media_type: "image/png", data: picture.split(",")[1] } },
      { type: "image", source: { type: "url", url: linkedPicture } },
      {
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: pdf.split(",")[1] },
        title: "a.pdf",
      },
      { type: "document", source: { type: "url", url: linkedPdf }, title: "a.pdf" },
    ];
    upstream.play(() => ({ content: answer }));
    const question = { role: "user", content };
    const toolCalls = [{ id: "toolu_1", type: "function", function: { name: "look", arguments: "{}" } }];
    const result = { role: "tool", tool_call_id: "toolu_1", content: [{ type: "text", text: "seen" }, content[0]] };
    const asked = { role: "assistant", content: "", tool_calls: toolCalls };
    for (const messages of [[question], [question, asked, result]]) {
      const body = { model, messages, ...(messages.length > 1 && { tools }) };
      expect((await client.post("/ai/chat", body)).status).to.equal(200);
      const { events } = await client.events("POST", "/ai/chat", { body: { ...body, stream: true } });
      await Array.fromAsync(events);
    }
    const [single, streamed, conversation, streamedConversation] = upstream.calls;
    expect(streamed?.body).to.deep.equal({ ...single?.body, stream: true });
    expect(streamedConversation?.body).to.deep.equal({ ...conversation?.body, stream: true });
    expect(single && marksOf(single)).to.equal(0);
    expect(single?.body.messages).to.deep.equal([{ role: "user", content: blocks }]);
    expect(conversation?.body.messages.at(-1)?.content).to.deep.equal([
      {
        type: "tool_result",
        tool_use_id: "toolu_1",
        content: [{ type: "text", text: "seen" }, blocks[0]],
        cache_control: { type: "ephemeral" },
      },
    ]);
  });

  it("keep an agent's reasoning from another provider that answers in Claude's place", async () => {
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const fallbacks = (models: string[]) => ({ body: { fallbacks: models.length > 0 ? [{ model, models }] : [] } });
    await owner.request("PUT", "/ai/fallbacks", fallbacks(["gpt-4.1-mini"]));
    upstream.play(({ turn }) =>
      turn === 1 ? { content: [...thought(1), call(1, "calculator", { expression: "4 + 5" })] } : { status: 529 },
    );
    openAi.play(() => ({ text: "Nine berths." }));
    const agent = { name: "Quay", model, systemPrompt: "You count.", tools: [{ type: "calculator" }] };
    const agentId = (await client.post("/agents", agent)).string("agentId");
    const run = await client.post(`/agents/${agentId}/run`, { input: "How many berths are there?" });
    await owner.request("PUT", "/ai/fallbacks", fallbacks([]));
    expect([run.status, run.at("output")]).to.deep.equal([200, "Nine berths."]);
    const [asked] = openAi.calls;
    expect(JSON.stringify(asked?.messages)).not.to.match(/signature|c2lnbmVk|thinking/);
    expect(asked?.messages.slice(-2).map((one) => one.tool_calls?.[0]?.id ?? one.tool_call_id)).to.deep.equal([
      "toolu_1_1",
      "toolu_1_1",
    ]);
  });
});
