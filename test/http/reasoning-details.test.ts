import { expect } from "chai";
import type { Behaviour } from "../support/fake-provider/behaviour.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

type Turn = { role: "assistant"; content?: unknown; tool_calls?: unknown; reasoning_details?: unknown };
const question = { role: "user", content: "What does a lease protect?" };
const tools = [{ type: "function", function: { name: "find", parameters: { type: "object" } } }];

/** How each provider gives its reasoning, and the item that comes of it. */
const providers = [
  {
    name: "openai",
    model: "gpt-5.6-sol",
    toBehaviour: (n: number): Behaviour => ({ reasoningItems: [encrypted(n)] }),
    toItem: (n: number): object => encrypted(n),
    another: "gpt-5.6-luna",
    unreadable: { errorCode: "invalid_encrypted_content", errorMessage: "It could not be verified." },
  },
  {
    name: "anthropic",
    model: "claude-opus-5-5",
    toBehaviour: (n: number): Behaviour => ({ reasoning: `thought ${n} — "ü"` }),
    toItem: (n: number): object => ({ type: "thinking", thinking: `thought ${n} — "ü"`, signature: "c2lnbmVk" }),
    another: "claude-sonnet-5-5",
    unreadable: { errorMessage: "messages.1.content.0: Invalid `signature` in `thinking` block" },
  },
] as const;
const encrypted = (n: number) => ({
  type: "reasoning" as const,
  encrypted_content: `gAAAA/${n}+==`,
  id: `rs_${n}`,
  summary: [{ text: `sum ${n} — "ü"`, type: "summary_text" }],
});

describe("reasoning that goes back", () => {
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  before(async function () {
    this.timeout(60_000);
    upstream = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-platform-openai-0123456789",
        OPENAI_BASE_URL: upstream.url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789",
        ANTHROPIC_BASE_URL: upstream.origin,
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const asJson = async (path: string, body: object) => (await client.post(path, body)).at("choices[0].message") as Turn;
  /** The turn that a client makes of a stream: what comes in its deltas, and on the native surface the calls at its end. */
  const asStream = async (path: string, body: object): Promise<Turn> => {
    const opened = await client.events("POST", path, { body: { ...body, stream: true } });
    const turn = { content: "", tool_calls: [] as { function: { arguments: string } }[], reasoning_details: undefined };
    let details = 0;
    const data = (await Array.fromAsync(opened.events)).map((event) => event.data);
    for (const [place, one] of data.entries()) {
      const delta = (valueAt(one, "choices[0].delta") ?? valueAt(one, "delta") ?? {}) as Record<string, never>;
      turn.content += delta.content ?? "";
      if (delta.reasoning_details !== undefined) {
        details = place;
        turn.reasoning_details = delta.reasoning_details;
      }
      const calls = (delta.tool_calls ?? valueAt(one, "toolCalls") ?? []) as typeof turn.tool_calls;
      for (const call of calls) {
        const known = turn.tool_calls[0];
        if (known === undefined) turn.tool_calls.push({ ...call });
        else known.function.arguments += call.function.arguments;
      }
    }
    const finish = data.findIndex((one) => valueAt(one, "choices[0].finish_reason") ?? valueAt(one, "finishReason"));
    if (turn.reasoning_details !== undefined) expect(details, "the last delta before the finish").to.equal(finish - 1);
    const { tool_calls: calls, ...said } = turn;
    return { role: "assistant", ...said, ...(calls.length > 0 && { tool_calls: calls }) };
  };

  for (const { name, model, toBehaviour, toItem, another, unreadable } of providers) {
    for (const path of ["/ai/chat", "/v1/chat/completions"]) {
      for (const [form, ask] of [
        ["JSON", asJson],
        ["a stream", asStream],
      ] as const) {
        it(`is ${name}'s own byte for byte over three turns with tools, by ${path} as ${form}`, async () => {
          const messages: object[] = [question];
          for (const n of [1, 2, 3]) {
            const call = { id: `call_${n}`, name: "find", arguments: `{"n":${n}}` };
            upstream.next({ ...toBehaviour(n), toolCalls: [call] });
            const turn = await ask(path, { model, messages, tools });
            expect(turn.reasoning_details).to.deep.equal([
              { type: "reasoning", provider: name, index: 0, item: toItem(n) },
            ]);
            messages.push(turn, { role: "tool", tool_call_id: call.id, content: `found ${n}` });
          }
          await ask(path, { model, messages, tools });
          const sent = JSON.stringify(upstream.requests[3]?.body);
          const places = [1, 2, 3].flatMap((n) => [
            sent.indexOf(JSON.stringify(toItem(n))),
            sent.indexOf(`call_${n}`),
            sent.indexOf(`found ${n}`),
          ]);
          expect(places.every((place) => place > 0)).to.equal(true);
          expect(places, "in their order").to.deep.equal(places.toSorted((a, b) => a - b));
          const other = providers.find((one) => one.name !== name)?.model;
          await ask(path, { model: other, messages, tools });
          const foreign = JSON.stringify(upstream.requests[4]?.body);
          expect(foreign)
            .to.contain("found 3")
            .and.not.to.match(/thought \d|encrypted_content":"gAAAA|rs_1/);
        });
      }
    }

    for (const [form, ask] of [
      ["JSON", asJson],
      ["a stream", asStream],
    ] as const)
      it(`is left out if a model of ${name} cannot read it, as ${form}`, async () => {
        const call = { id: "call_1", name: "find", arguments: "{}" };
        upstream.next({ ...toBehaviour(1), toolCalls: [call] });
        const turn = await ask("/ai/chat", { model, messages: [question], tools });
        const messages = [question, turn, { role: "tool", tool_call_id: call.id, content: "found" }];
        upstream.next({ status: 400, ...unreadable });
        const ended = await ask("/ai/chat", { model: another, messages, tools });
        expect(ended.content).to.equal("The lease protects a job.");
        const sent = upstream.requests.slice(1).map(({ body }) => JSON.stringify(body));
        expect(sent.map((body) => body.includes(JSON.stringify(toItem(1))))).to.deep.equal([true, false]);
        expect(sent[1]).to.contain("found");
        upstream.setDefault({ status: 400, ...unreadable });
        const refused = await client.post("/ai/chat", { model: another, messages, tools });
        expect([refused.status, upstream.requests.length], "once").to.deep.equal([400, 5]);
      });

    it(`is in an answer of ${name} that the cache keeps, and tells two conversations apart`, async () => {
      const headers = { "x-svc-options": "cache=true" };
      const post = (...messages: object[]) => client.post("/ai/chat", { model, messages, tools }, { headers });
      const unique = { role: "user", content: `Of ${name}: ${question.content}` };
      upstream.next(toBehaviour(7));
      const first = await post(unique);
      const kept = await post(unique);
      expect([first.at("cached"), kept.at("cached")]).to.deep.equal([false, true]);
      const details = "choices[0].message.reasoning_details";
      expect(kept.at(details)).to.deep.equal(first.at(details)).and.to.have.lengthOf(1);
      const opened = await client.events("POST", "/ai/chat", {
        body: { model, messages: [unique], tools, stream: true },
        headers,
      });
      const events = (await Array.fromAsync(opened.events)).map(({ data }) => data);
      expect(valueAt(events.at(-2), "delta.reasoning_details")).to.deep.equal(first.at(details));
      expect(valueAt(events.at(-1), "cached")).to.equal(true);
      const turn = first.at("choices[0].message") as Turn;
      const changed = JSON.parse(JSON.stringify(turn).replace(JSON.stringify(toItem(7)), JSON.stringify(toItem(8))));
      expect((await post(unique, turn, question)).at("cached")).to.equal(false);
      expect((await post(unique, changed, question)).at("cached")).to.equal(false);
      expect((await post(unique, turn, question)).at("cached")).to.equal(true);
    });
  }
});
