import { expect } from "chai";
import { askSurface, completions, eachForm, type Said } from "../support/four-surfaces.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import {
  a,
  badGateway,
  type Case,
  calls,
  contents,
  type Expected,
  ends,
  errorOf,
  failures,
  inStream,
  key,
  text,
  usages,
} from "../support/lenient-answers.ts";
import {
  chatAnswer,
  chunk,
  eventsOf,
  everywhere,
  jsonOf,
  messageAnswer,
  responseAnswer,
} from "../support/odd-answers.ts";
import { startRecordingUpstream } from "../support/recording-upstream.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

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
      env: { FETCH_ALLOW_ORIGINS: upstream.origin, PROVIDER_MAX_ATTEMPTS: "1" },
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

  const page = { headers: { "content-type": "text/html" }, pieces: ["<html><body>Sign in</body></html>"] };
  const noAnswers = { "a page": page, "an empty stream": eventsOf(""), "a stream of comments": eventsOf(": wait\n\n") };
  for (const [name, scripted] of Object.entries(noAnswers))
    it(`that sends ${name} has sent no answer, and none was cut`, async () => {
      for (const model of Object.keys(wires))
        for (const [form, { error }] of await askAll(
          { answer: { stream: scripted, json: scripted }, asked: {}, model },
          true,
        ))
          expect(error?.details?.code, `${model}, ${form}`).to.equal("malformed_answer");
    });

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

  it("that rejects a request is asked once, and once more after a rate limit", async () => {
    const withTries = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-tries-0123456789",
        OPENAI_BASE_URL: `${upstream.origin}/v1`,
        PROVIDER_MAX_ATTEMPTS: "3",
      },
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
