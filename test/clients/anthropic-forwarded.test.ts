import Anthropic from "@anthropic-ai/sdk";
import { expect } from "chai";
import { makeClient } from "../support/http-client.ts";
import { startRecordingUpstream } from "../support/recording-upstream.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const model = "claude-opus-5-5";
const key = "sk-ant-platform-0123456789abc";
/** Billionths of a USD a token, as Anthropic's price list has them. */
const price = { input: 4_000, cached: 200, output: 20_000 };
/** Odd blanks, numbers and fields that nobody here knows. */
const odd = `{ "model":"${model}",  "max_tokens": 1e2, "messages":[{"role":"user","content":[{"type":"text","text":"Gr\\u00fc\\u00df dich"},{"type":"tomorrow_block","n":1.50}]}],"beta_field":{"b":2,"a":1} }`;
const answer = `{"id":"msg_1","type":"message","role":"assistant","model":"${model}","content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln/+=="},{"type":"tomorrow_block","n":1.50},{"type":"text","text":"Ja."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":7,"tomorrow_tokens":3}}`;
const cost = 10 * price.input + 100 * price.cached + 7 * price.output;
const events = [
  `event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"${model}","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1}}}\n\n`,
  'event: ping\ndata: {"type": "ping"}\n\n',
  'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüß "}}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"dich."}}\n\n',
  'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
  'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7,"x":1.0}}\n\n',
  'event: message_stop\ndata: {"type":"message_stop"}\n\n',
];

describe("requests of Anthropic's clients, forwarded to Anthropic", () => {
  let upstream: Awaited<ReturnType<typeof startRecordingUpstream>>;
  let test: TestPlatform;
  let client: Anthropic;
  before(async () => {
    upstream = await startRecordingUpstream();
    test = await startPlatform({
      workers: false,
      env: { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: upstream.origin, FETCH_ALLOW_ORIGINS: upstream.origin },
    });
    client = new Anthropic({ baseURL: test.url, apiKey: test.keys.member, maxRetries: 0 });
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const post = (body: string, path = "/v1/messages", headers = {}) =>
    fetch(`${test.url}${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-api-key": test.keys.member,
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "tomorrow-2026-12-01,other-1",
        ...headers,
      },
      body,
    });
  const spent = async () => {
    await test.platform.gateway.flush();
    const usage = await makeClient({ url: test.url, key: test.keys.member }).get("/usage");
    return Math.round(Number(usage.at("total.costUsd") ?? 0) * 1e9);
  };

  it("go through byte for byte but for the key, and are charged by the usage of the answer", async () => {
    const before = await spent();
    upstream.play({ pieces: [answer.slice(0, 90), answer.slice(90)] });
    const response = await post(odd, "/v1/messages?beta=true");
    expect(response.status).to.equal(200);
    expect(await response.text()).to.equal(answer);
    const [request] = upstream.requests;
    expect(request?.raw).to.equal(odd);
    expect(request?.path).to.equal("/v1/messages?beta=true");
    expect(request?.headers).to.include({
      "x-api-key": key,
      "anthropic-version": "2023-06-01",
      "anthropic-beta": "tomorrow-2026-12-01,other-1",
    });
    expect(JSON.stringify(request?.headers)).not.to.include(test.keys.member);
    expect((await spent()) - before).to.equal(cost);
  });

  it("stream byte for byte, whatever the pieces of the network, and are charged", async () => {
    const before = await spent();
    const whole = events.join("");
    upstream.play({
      headers: { "content-type": "text/event-stream" },
      pieces: [whole.slice(0, 50), whole.slice(50, 420), whole.slice(420, 700), whole.slice(700)],
    });
    const body = odd.replace('"beta_field"', '"stream":true,"beta_field"');
    const response = await post(body);
    expect(response.headers.get("content-type")).to.match(/^text\/event-stream/);
    expect(await response.text()).to.equal(whole);
    expect(upstream.requests[0]?.raw).to.equal(body);
    expect((await spent()) - before).to.equal(cost);
  });

  it("work through the official client, which reads a stream that breaks off as an error", async () => {
    const about = { model, max_tokens: 100, messages: [{ role: "user" as const, content: "Hi" }] };
    upstream.play({ headers: { "content-type": "text/event-stream" }, pieces: events });
    const message = await client.messages.stream(about).finalMessage();
    expect(message.content).to.deep.equal([{ type: "text", text: "Grüß dich." }]);
    const before = await spent();
    upstream.play({ pieces: [...events.slice(0, 4), "event: content_bl"], isCut: true });
    const error = await client.messages
      .stream(about)
      .finalMessage()
      .catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(Anthropic.APIError);
    expect((await spent()) - before).to.be.above(10 * price.input + 100 * price.cached);
  });

  it("are tried again before the first byte, and get Anthropic's own refusals as they are", async () => {
    const overloaded = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded","odd":1.0}}';
    upstream.play({ status: 529, pieces: [overloaded] }, { pieces: [answer] });
    expect(await (await post(odd)).text()).to.equal(answer);
    expect(upstream.requests).to.have.length(2);
    const refusal =
      '{"type":"error","error":{"type":"invalid_request_error","message":"tomorrow_block: not yet"},"request_id":"req_x"}';
    const before = await spent();
    upstream.play({ status: 400, pieces: [refusal] });
    const response = await post(odd);
    expect([response.status, await response.text()]).to.deep.equal([400, refusal]);
    expect(upstream.requests).to.have.length(1);
    expect(await spent()).to.equal(before);
  });

  it("report a refusal of the platform's own key as a failure of ours", async () => {
    upstream.play({
      status: 401,
      pieces: ['{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}'],
    });
    const response = await post(odd);
    expect(response.status).to.equal(500);
    expect(await response.text())
      .to.include("api_error")
      .and.not.to.include("x-api-key");
  });

  it("leave the offline model to the platform, as a message and as a stream", async () => {
    upstream.play();
    const about = { model: "meta-llm", max_tokens: 100, messages: [{ role: "user" as const, content: "Hello" }] };
    const message = await client.messages.create(about);
    expect(message.content[0]).to.include({ type: "text" });
    expect(message.usage.output_tokens).to.be.above(0);
    const streamed = await client.messages.stream(about).finalMessage();
    expect(streamed.content).to.deep.equal(message.content);
    expect(upstream.requests).to.have.length(0);
  });

  it("are made once for an idempotency key, and repeated byte for byte", async () => {
    upstream.play({ pieces: [answer] });
    const headers = { "idempotency-key": "once" };
    for (const _ of [1, 2]) expect(await (await post(odd, "/v1/messages", headers)).text()).to.equal(answer);
    expect(upstream.requests).to.have.length(1);
  });

  it("go to a custom provider of the same wire too, which gets its own name of the model and its own key", async () => {
    const before = await spent();
    const own = { id: "tomorrow", type: "chat", contextWindow: 10_000, inputUsdPerMTok: 1, outputUsdPerMTok: 2 };
    const given = {
      wire: "anthropic-messages",
      baseUrl: upstream.origin,
      key: "custom-0123456789abcdef",
      models: [own],
    };
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    const set = await admin.request("PUT", "/ai/providers/custom/quay", { body: given });
    expect(set.status, set.text).to.equal(200);
    upstream.play({ pieces: [answer] });
    const response = await post(odd.replace(model, "quay/tomorrow"));
    expect(await response.text()).to.equal(answer);
    const [request] = upstream.requests;
    expect(JSON.parse(request?.raw ?? "")).to.deep.equal({ ...JSON.parse(odd), model: "tomorrow" });
    expect(request?.headers["x-api-key"]).to.equal(given.key);
    expect((await spent()) - before).to.equal(110 * 1_000 + 7 * 2_000);
  });

  it("are counted by Anthropic, at no cost", async () => {
    const before = await spent();
    upstream.play({ pieces: ['{"input_tokens": 4711 }'] });
    const body = odd.replace('"max_tokens": 1e2, ', "");
    const response = await post(body, "/v1/messages/count_tokens");
    expect(await response.text()).to.equal('{"input_tokens": 4711 }');
    expect(upstream.requests[0]).to.deep.include({ path: "/v1/messages/count_tokens", raw: body });
    expect(await spent()).to.equal(before);
  });

  it("set aside what their body can cost, and the whole window only where it names contents elsewhere", async () => {
    const { gateway } = test.platform;
    const tenantId = await tenantOf(test);
    const content = "Hi. ".repeat(1_000);
    const asked = { model, max_tokens: 100, messages: [{ role: "user", content }] };
    const block = { type: "text", text: "Hi", cache_control: { type: "ephemeral" } };
    const url = { type: "url", url: "https://acme.io/a.pdf" };
    await gateway.setBudget(tenantId, (await spent()) / 1e9 + 0.5); // a tenth of what the whole window costs
    for (const [name, more, status] of [
      ["a field that nobody knows", { context_management: { edits: [{ type: "clear_thinking_20251015" }] } }, 200],
      ["cache control of the whole", { cache_control: { type: "ephemeral" } }, 200],
      [
        "both, and a new kind of thinking",
        { context_management: {}, thinking: { type: "deep" }, cache_control: null },
        200,
      ],
      ["a new kind of block", { system: [block, { type: "text_v2", text: content }] }, 200],
      ["tools that its client runs", { tools: [{ type: "bash_20250124", name: "bash" }] }, 200],
      [
        "a tool's input with fields of any name",
        {
          messages: [
            { role: "user", content },
            {
              role: "assistant",
              content: [{ type: "tool_use", id: "a", name: "b", input: { source: url, container: 1 } }],
            },
          ],
        },
        200,
      ],
      ["a search that the provider runs", { tools: [{ type: "web_search_20250305", name: "web_search" }] }, 402],
      [
        "a document by its URL",
        { messages: [{ role: "user", content: [{ type: "document", source: url }] }], x: 1 },
        402,
      ],
      ["a container", { container: "c_1" }, 402],
      ["a thread", { thread: "t_1" }, 402],
      ["servers of tools", { mcp_servers: [{ type: "url", url: "https://acme.io", name: "a" }] }, 402],
    ] as const) {
      if (status === 200) upstream.play({ pieces: [answer] });
      const response = await post(JSON.stringify({ ...asked, ...more }));
      expect(response.status, `${name}: ${await response.text()}`).to.equal(status);
    }
    await gateway.setBudget(tenantId, null);
  });

  it("are a 402 where the budget does not pay for the answer that they ask for, and reach nobody", async () => {
    const { gateway } = test.platform;
    const tenantId = await tenantOf(test);
    const body = `{"model":"${model}","max_tokens":100,"messages":[{"role":"user","content":"Hi"}]}`;
    const answerUsd = (100 * price.output) / 1e9;
    await gateway.setBudget(tenantId, (await spent()) / 1e9 + answerUsd / 2);
    upstream.play({ pieces: [answer] });
    const response = await post(body);
    expect(response.status).to.equal(402);
    expect(await response.text()).to.include("billing_error");
    expect(upstream.requests).to.have.length(0);
    await gateway.setBudget(tenantId, (await spent()) / 1e9 + answerUsd * 2);
    expect((await post(body)).status).to.equal(200);
    expect(upstream.requests[0]?.raw).to.equal(body);
    await gateway.setBudget(tenantId, null);
  });
});
