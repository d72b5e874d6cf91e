import { expect } from "chai";
import { type Asked, askSurface, completions, eachForm, type Said } from "../support/four-surfaces.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import {
  chatAnswer,
  chunk,
  DONE,
  eventsOf,
  everywhere,
  jsonOf,
  messageAnswer,
  type OddAnswer,
  responseAnswer,
} from "../support/odd-answers.ts";
import { startRecordingUpstream } from "../support/recording-upstream.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

type Expected = Partial<Omit<Said, "error">> & { error?: Record<string, unknown> };
type Case = { it: string; answer: OddAnswer; says: Expected; asked?: Partial<Asked>; model?: string };

const key = "sk-odd-servers-0123456789abcdef";
const call = (id: unknown, json: unknown, more: object = {}) => ({
  id,
  type: "function",
  function: { name: "lookup", arguments: json },
  ...more,
});
const [a, b] = ['{"q":"a"}', '{"q":"b"}'];
const callsOf = (...calls: object[]) => ({ content: null, tool_calls: calls });
const each = (...calls: object[]) => calls.map((one) => ({ tool_calls: [one] }));
const two = [
  { name: "lookup", arguments: a },
  { name: "lookup", arguments: b },
];
const one = [{ name: "lookup", arguments: a }];
const withTools = { tools: true };
const text = (content: unknown) => ({ message: { content } });

const finishes: [unknown, string, string?][] = [
  ["length", "length"],
  ["model_length", "length"],
  ["MAX_TOKENS", "length"],
  ["maxTokens", "length"],
  ["SAFETY", "content_filter"],
  ["sensitive", "content_filter"],
  ["eos", "stop"],
  ["STOP", "stop"],
  ["weird_new_word", "length", "weird_new_word"],
];

const ends: Case[] = [
  ...finishes.map(([word, finish, own]): Case => {
    return {
      it: `ends with ${word} as ${finish}`,
      answer: chatAnswer({ ...text("half"), finish: word }),
      says: { text: "half", finish, own },
    };
  }),
  {
    it: "ends with Anthropic's pause_turn as cut",
    model: "msg",
    answer: messageAnswer([{ type: "text", text: "half" }], "pause_turn"),
    says: { text: "half", finish: "length", own: "pause_turn" },
  },
  {
    it: "ends with Anthropic's refusal as filtered",
    model: "msg",
    answer: messageAnswer([{ type: "text", text: "no" }], "refusal"),
    says: { text: "no", finish: "content_filter" },
  },
  {
    it: "ends with an incomplete response of an unknown reason as cut",
    model: "resp",
    answer: responseAnswer([{ type: "message", content: [{ type: "output_text", text: "half" }] }], {
      status: "incomplete",
      incomplete_details: { reason: "quota_of_the_day" },
    }),
    says: { text: "half", finish: "length", own: "quota_of_the_day" },
  },
];

const calls: Case[] = [
  {
    it: "repeats the index of calls",
    answer: chatAnswer({
      message: callsOf(call("call_a", a), call("call_b", b)),
      deltas: each(call("call_a", a, { index: 0 }), call("call_b", b, { index: 0 })),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives no index",
    answer: chatAnswer({
      message: callsOf(call("call_a", a), call("call_b", b)),
      deltas: each(call("call_a", a), call("call_b", b)),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives two calls one id",
    answer: chatAnswer({
      message: callsOf(call("x", a), call("x", b)),
      deltas: each(call("x", a, { index: 0 }), call("x", b, { index: 1 })),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives empty ids",
    answer: chatAnswer({
      message: callsOf(call("", a), call("", b)),
      deltas: each(call("", a, { index: 0 }), call("", b, { index: 1 })),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives empty ids and one index",
    answer: chatAnswer({
      message: callsOf(call("", a), call("", b)),
      deltas: each(call("", a, { index: 0 }), call("", b, { index: 0 })),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives no ids",
    answer: chatAnswer({
      message: callsOf(call(undefined, a), call(undefined, b)),
      deltas: [{ tool_calls: [call(undefined, a), call(undefined, b)] }],
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives arguments as an object",
    answer: chatAnswer({ message: callsOf(call("call_a", { q: "a" }, { index: 0 })), finish: "tool_calls" }),
    says: { calls: one as Said["calls"] },
  },
  {
    it: "gives arguments as JSON in JSON",
    answer: chatAnswer({ message: callsOf(call("call_a", JSON.stringify(a), { index: 0 })), finish: "tool_calls" }),
    says: { calls: one as Said["calls"] },
  },
  {
    it: "gives null for no arguments",
    answer: chatAnswer({ message: callsOf(call("call_a", null, { index: 0 })), finish: "tool_calls" }),
    says: { calls: [{ name: "lookup", arguments: "{}" }] as Said["calls"] },
  },
  {
    it: "gives an empty text for no arguments",
    answer: chatAnswer({ message: callsOf(call("call_a", "", { index: 0 })), finish: "tool_calls" }),
    says: { calls: [{ name: "lookup", arguments: "{}" }] as Said["calls"] },
  },
  {
    it: "repeats id and name with each part",
    answer: chatAnswer({
      message: callsOf(call("call_a", a), call("call_b", b)),
      deltas: each(
        call("call_a", '{"q":', { index: 0 }),
        call("call_a", '"a"}', { index: 0 }),
        call("call_b", '{"q":', { index: 1 }),
        call("call_b", '"b"}', { index: 1 }),
      ),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "sends the parts of two calls in turns",
    answer: chatAnswer({
      message: callsOf(call("call_a", a), call("call_b", b)),
      deltas: each(
        call("call_a", '{"q":', { index: 0 }),
        call("call_b", '{"q":', { index: 1 }),
        { index: 0, function: { arguments: '"a"}' } },
        { index: 1, function: { arguments: '"b"}' } },
      ),
      finish: "tool_calls",
    }),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "sends a name in pieces",
    answer: chatAnswer({
      message: callsOf(call("call_a", a)),
      deltas: each(
        { index: 0, id: "call_a", function: { name: "look", arguments: "" } },
        { index: 0, function: { name: "up", arguments: a } },
      ),
      finish: "tool_calls",
    }),
    says: { calls: one as Said["calls"] },
  },
  {
    it: "begins arguments with an empty object",
    answer: chatAnswer({
      message: callsOf(call("call_a", a)),
      deltas: each(call("call_a", "{}", { index: 0 }), { index: 0, function: { arguments: a } }),
      finish: "tool_calls",
    }),
    says: { calls: one as Said["calls"] },
  },
  {
    it: "puts a namespace before the name",
    answer: chatAnswer({
      message: callsOf({ id: "call_a", index: 0, function: { name: "functions.lookup", arguments: a } }),
      finish: "tool_calls",
    }),
    says: { calls: one as Said["calls"] },
  },
  {
    it: "calls in the older form",
    answer: chatAnswer({
      message: { content: null, function_call: { name: "lookup", arguments: a } },
      finish: "function_call",
    }),
    says: { calls: one as Said["calls"] },
  },
  {
    it: "says stop although it calls",
    answer: chatAnswer({ message: callsOf(call("call_a", a, { index: 0 })), finish: "stop" }),
    says: { calls: one as Said["calls"], finish: "tool_calls" },
  },
  {
    it: "says something after a call without arguments",
    answer: chatAnswer({
      message: { content: "so", tool_calls: [call("call_a", "", { index: 0 })] },
      deltas: [...each(call("call_a", "", { index: 0 })), { content: "so" }],
      finish: "tool_calls",
    }),
    says: { text: "so", calls: [{ name: "lookup", arguments: "{}" }] as Said["calls"] },
  },
  {
    it: "gives Anthropic's calls one id",
    model: "msg",
    answer: messageAnswer(
      [
        { type: "tool_use", id: "x", name: "lookup", input: { q: "a" } },
        { type: "tool_use", id: "x", name: "lookup", input: { q: "b" } },
      ],
      "tool_use",
    ),
    says: { calls: two as Said["calls"] },
  },
  {
    it: "gives arguments of a response as an object, and no call id",
    model: "resp",
    answer: responseAnswer([{ type: "function_call", id: "fc_1", name: "lookup", arguments: { q: "a" } }], {
      status: "completed",
    }),
    says: { calls: one as Said["calls"] },
  },
].map((one) => ({ ...one, asked: withTools }));

const contents: Case[] = [
  {
    it: "gives a content of parts",
    answer: chatAnswer({
      message: {
        content: [
          { type: "text", text: "one " },
          { type: "text", text: "two" },
        ],
      },
    }),
    says: { text: "one two", finish: "stop" },
  },
  {
    it: "puts what it thought among the parts",
    answer: chatAnswer({
      message: {
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
          { type: "text", text: "two" },
        ],
      },
    }),
    says: { text: "two" },
  },
  {
    it: "answers a stream with JSON",
    answer: { ...chatAnswer(text("whole")), stream: chatAnswer(text("whole")).json },
    says: { text: "whole", finish: "stop", output: 5 },
  },
  {
    it: "puts JSON into a fence",
    asked: { schema: true },
    answer: chatAnswer({
      message: { content: '```json\n{"a":1}\n```' },
      deltas: ["``", "`json", '\n{"a"', ":1}\n", "```"].map((content) => ({ content })),
    }),
    says: { text: '{"a":1}' },
  },
  {
    it: "says that nothing is finished with an empty reason",
    answer: {
      json: chatAnswer(text("hello")).json,
      stream: eventsOf(chunk({ content: "hel" }, ""), chunk({ content: "lo" }, ""), chunk({}, "stop"), DONE),
    },
    says: { text: "hello", finish: "stop" },
  },
];

const usages: Case[] = [
  {
    it: "counts nothing for a text",
    answer: chatAnswer({
      ...text("some words that cost something"),
      usage: { prompt_tokens: 0, completion_tokens: 0 },
    }),
    says: { finish: "stop" },
  },
  {
    it: "counts in texts",
    answer: chatAnswer({ ...text("hello"), usage: { prompt_tokens: "100", completion_tokens: "50" } }),
    says: { input: 100, output: 50 },
  },
  {
    it: "counts what it thought beside the answer",
    answer: chatAnswer({
      ...text("hello"),
      usage: {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 115,
        completion_tokens_details: { reasoning_tokens: 100 },
      },
    }),
    says: { input: 10, output: 105 },
  },
  {
    it: "counts nothing at last",
    answer: {
      json: chatAnswer(text("hello")).json,
      stream: eventsOf(
        chunk({ content: "hello" }, null, { usage: { prompt_tokens: 10, completion_tokens: 5 } }),
        chunk({}, "stop", { usage: { prompt_tokens: 0, completion_tokens: 0 } }),
        DONE,
      ),
    },
    says: { input: 10, output: 5 },
  },
];

const errorOf = (error: object) => everywhere({ error });
const badGateway = { code: 502, message: `Worker limit reached for ${key} and ${key.slice(0, 12)}***` };
const inStream = (...before: string[]) =>
  eventsOf(...before, `data: ${JSON.stringify({ choices: [], error: badGateway })}\n\n`, DONE);
const failures: Case[] = [
  {
    it: "reports an error with status 200",
    answer: errorOf(badGateway),
    says: {
      error: { code: "provider_failed", status: 502, provider: /Worker limit reached for \[key\] and \[key\]$/ },
    },
  },
  {
    it: "reports a wrong request with status 200",
    answer: errorOf({ code: 400, message: "too long" }),
    says: { error: { code: "provider_rejected", status: 400, provider: /too long/ } },
  },
  {
    it: "reports a limit with status 200",
    answer: errorOf({ type: "rate_limit_error", message: "slow down" }),
    says: { error: { code: "provider_rate_limited", status: 429, provider: /slow down/ } },
  },
  {
    it: "reports an error before any text",
    answer: { json: errorOf(badGateway).json, stream: inStream() },
    says: { error: { code: "provider_failed", status: 502, provider: /Worker limit/ } },
  },
  {
    it: "refuses as FastAPI does",
    answer: everywhere({ detail: [{ loc: ["body", "temperature"], msg: "too large", type: "value_error" }] }, 422),
    says: { error: { code: "provider_rejected", provider: /^temperature: too large$/ } },
  },
  {
    it: "refuses as vLLM does",
    answer: everywhere({ object: "error", message: "no such thing", type: "BadRequestError", code: 400 }, 400),
    says: { error: { code: "provider_rejected", provider: /no such thing/ } },
  },
  {
    it: "refuses as Gemini does",
    answer: everywhere([{ error: { code: 400, message: "bad", status: "INVALID_ARGUMENT" } }], 400),
    says: { error: { code: "provider_rejected", provider: /bad/ } },
  },
  {
    it: "fails with a message",
    answer: everywhere({ error: { message: "engine is down" } }, 503),
    says: { error: { code: "provider_failed", provider: /engine is down/ } },
  },
];

describe("a lenient server", () => {
  let test: TestPlatform;
  let member: ApiClient;
  let admin: ApiClient;
  let upstream: Awaited<ReturnType<typeof startRecordingUpstream>>;
  before(async function () {
    this.timeout(60_000);
    upstream = await startRecordingUpstream();
    test = await startPlatform({
      workers: false,
      env: { FETCH_ALLOW_ORIGINS: upstream.origin, PROVIDER_MAX_TRIES: "1" },
    });
    member = makeClient({ url: test.url, key: test.keys.member });
    admin = makeClient({ url: test.url, key: test.keys.admin });
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const wires = { chat: "openai-chat", msg: "anthropic-messages", resp: "openai-responses" };
  /** Also closes their breakers. */
  const setProviders = async () => {
    for (const [name, wire] of Object.entries(wires)) {
      const model = { id: "m", type: "chat", contextWindow: 100_000, inputUsdPerMTok: 1, outputUsdPerMTok: 1 };
      const baseUrl = name === "msg" ? upstream.origin : `${upstream.origin}/v1`;
      const set = await admin.request("PUT", `/ai/providers/custom/${name}`, {
        body: { baseUrl, key, wire, models: [model] },
      });
      expect(set.status, set.text).to.equal(200);
    }
  };
  beforeEach(setProviders);

  /** What every surface says, streamed or not. Messages for a server of that wire go as they are, so they are left out. */
  const askAll = async ({ answer, asked, model = "chat" }: Omit<Case, "it" | "says">, isFailing = false) => {
    upstream.answer((raw) => (JSON.parse(raw).stream === true ? answer.stream : answer.json));
    const said: [string, Said][] = [];
    for (const { surface, isStream } of eachForm()) {
      if (model === "msg" && surface.name === "messages") continue;
      if (isFailing) await setProviders();
      said.push([
        `${surface.name}${isStream ? ", streamed" : ""}`,
        await askSurface(member, surface, isStream, { model: `${model}/m`, ...asked }),
      ]);
    }
    return said;
  };
  const check = (where: string, said: Said, { calls: wanted, ...says }: Expected) => {
    expect(said.error, where).to.equal(undefined);
    for (const [field, value] of Object.entries(says)) {
      const isShown = !(field === "input" || field === "output") || said[field] !== undefined; // chunks without usage
      if (isShown) expect(said[field as keyof Said], `${where}: ${field}`).to.equal(value);
    }
    if (wanted === undefined) return;
    const shown = said.calls.map(({ name, arguments: json }) => ({ name, arguments: json.replace(/": "/g, '":"') }));
    expect(shown, where).to.deep.equal(wanted);
    const ids = said.calls.map(({ id }) => id);
    expect(new Set(ids.filter((id) => id !== "" && id !== "undefined")).size, `${where}: ${ids}`).to.equal(
      wanted.length,
    );
  };

  for (const { it: name, says, ...given } of [...ends, ...calls, ...contents, ...usages]) {
    it(`${name}, and is understood on every surface`, async () => {
      for (const [where, said] of await askAll(given)) check(where, said, says);
    });
  }

  it("that counts nothing costs what was said", async () => {
    const answer = chatAnswer({
      ...text("some words that cost something"),
      usage: { prompt_tokens: 0, completion_tokens: 0 },
    });
    for (const [where, said] of await askAll({ answer })) expect(said.costUsd, where).to.be.above(1e-6);
  });

  for (const { it: name, answer, says } of failures) {
    it(`${name}, and the error says so on every surface`, async () => {
      const { code, status, provider } = says.error ?? {};
      for (const { surface, isStream } of eachForm()) {
        upstream.answer((raw) => (JSON.parse(raw).stream === true ? answer.stream : answer.json));
        const where = `${surface.name}${isStream ? ", streamed" : ""}`;
        await setProviders();
        const { error } = await askSurface(member, surface, isStream, { model: "chat/m" });
        expect(error?.details.provider, `${where} ${JSON.stringify(error)}`).to.match(provider as RegExp);
        if (status !== undefined) expect(error?.details.status, where).to.equal(status);
        if (surface.name === "chat") expect(error?.code, where).to.equal(code);
      }
    });
  }

  it("that breaks off with the reason error is an error, with what came as its text", async () => {
    for (const [choice, finish] of [
      [{}, "error"],
      [{ error: badGateway }, "error"],
      [{ error: badGateway }, "stop"],
    ] as const) {
      const answer = chatAnswer({ ...text("half "), finish, choice });
      for (const [where, { text: streamed, error }] of await askAll({ answer }, true)) {
        const shown = `${where} ${finish} ${JSON.stringify(error)}`;
        expect(error, shown).to.be.an("object");
        if (where.endsWith("streamed"))
          expect(where.startsWith("responses") ? "half " : streamed, shown).to.equal("half ");
        else expect(error?.details.text, shown).to.equal("half ");
      }
    }
  });

  it("whose error is in the middle of a stream ends the stream with it", async () => {
    const answer = { json: errorOf(badGateway).json, stream: inStream(chunk({ content: "half " })) };
    const named = {
      json: answer.json,
      stream: eventsOf(chunk({ content: "half " }), 'event: error\ndata: {"message":"boom","code":500}\n\n'),
    };
    for (const [one, says] of [
      [answer, /Worker limit/],
      [named, /boom/],
    ] as const) {
      for (const [where, { error }] of await askAll({ answer: one }, true)) {
        if (where === "chat, streamed") expect(error?.details.provider, where).to.match(says);
        if (where.endsWith("streamed")) expect(error, where).to.be.an("object");
      }
    }
  });

  it("whose messages go as they came is understood, too", async () => {
    const headers = { authorization: `Bearer ${test.keys.member}`, "content-type": "application/json" };
    const ask = (stream: boolean) => {
      const body = JSON.stringify({
        model: "msg/m",
        max_tokens: 100,
        messages: [{ role: "user", content: "go" }],
        stream,
      });
      return fetch(`${test.url}/v1/messages`, { method: "POST", headers, body });
    };
    const blocks = [
      { type: "text", text: "whole" },
      { type: "tool_use", id: "toolu_1", name: "lookup", input: { q: "a" } },
    ];
    const answer = messageAnswer(blocks, "tool_use");
    upstream.answer(() => answer.json);
    const events = (await (await ask(true)).text()).split("\n\n").map((event) => event.split("data: ")[1] ?? "{}");
    const deltas = events.flatMap((data) =>
      JSON.parse(data).type === "content_block_delta" ? [JSON.parse(data).delta] : [],
    );
    expect(deltas).to.deep.equal([
      { type: "text_delta", text: "whole" },
      { type: "input_json_delta", partial_json: a },
    ]);
    expect(JSON.parse(events.at(-2) ?? "").type).to.equal("message_stop");
    const failed = everywhere({ type: "error", error: { type: "invalid_request_error", message: "too long" } });
    for (const stream of [false, true]) {
      upstream.answer(() => failed.json);
      const refused = await ask(stream);
      const { error } = (await refused.json()) as { error: { details: { provider: string } } };
      expect([refused.status, error.details.provider], String(stream)).to.deep.equal([400, "too long"]);
    }
  });

  it("is told what a cut call of an earlier turn was", async () => {
    const cut = { id: "call_a", type: "function", function: { name: "lookup", arguments: '{"q": "a' } };
    const messages = [
      { role: "user", content: "go" },
      { role: "assistant", content: null, tool_calls: [cut] },
      { role: "tool", tool_call_id: "call_a", content: "not understood" },
    ];
    const answers = {
      chat: chatAnswer(text("ok")),
      msg: messageAnswer([{ type: "text", text: "ok" }], "end_turn"),
      resp: responseAnswer([{ type: "message", content: [{ type: "output_text", text: "ok" }] }], {
        status: "completed",
      }),
    };
    for (const [name, answer] of Object.entries(answers)) {
      for (const stream of [false, true]) {
        upstream.answer(() => (stream ? answer.stream : answer.json));
        const said = await askSurface(member, completions, stream, { model: `${name}/m`, messages });
        expect(said.text, JSON.stringify(said)).to.equal("ok");
        const sent = upstream.requests.at(-1)?.raw ?? "";
        expect(sent, name).to.match(/"(?:arguments":"\{\}"|input":\{\})/);
        expect(sent, name).to.include('{\\"q\\": \\"a\\n\\nnot understood');
      }
    }
  });

  it("that is refused for what it was asked is asked once, and once more after a limit", async () => {
    const withTries = await startPlatform({
      workers: false,
      env: { OPENAI_API_KEY: "sk-tries-0123456789", OPENAI_BASE_URL: `${upstream.origin}/v1`, PROVIDER_MAX_TRIES: "3" },
    });
    const headers = { authorization: `Bearer ${withTries.keys.member}`, "content-type": "application/json" };
    try {
      for (const isStream of [false, true]) {
        const ok = chatAnswer(text("ok"));
        const good = isStream ? ok.stream : ok.json;
        const body = { model: "gpt-4.1", messages: [{ role: "user", content: "go" }], stream: isStream };
        const ask = async () => {
          const response = await fetch(`${withTries.url}/ai/chat`, {
            method: "POST",
            headers,
            body: JSON.stringify(body),
          });
          await response.text();
          return response;
        };
        upstream.play(jsonOf({ error: { code: 400, message: "no" } }), good);
        expect([(await ask()).status, upstream.requests.length]).to.deep.equal([400, 1]);
        upstream.play(jsonOf({ error: { code: 429, message: "slow" } }, 200, { "retry-after-ms": "300" }), good);
        const before = performance.now();
        expect([(await ask()).status, upstream.requests.length]).to.deep.equal([200, 2]);
        expect(performance.now() - before).to.be.above(300);
      }
    } finally {
      await withTries.close();
    }
  }).timeout(30_000);
});
