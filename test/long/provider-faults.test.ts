import { expect } from "chai";
import type { Behaviour } from "../support/fake-provider/behaviour.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { parseDataLines, postRaw } from "../support/raw-http.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const messages = [{ role: "user", content: "What does a lease protect?" }];
const answer = "The lease protects a job.";
const models = { openai: "gpt-5.4-nano", anthropic: "claude-haiku-5-5" };
/** Each answer's tokens are counted, so that the ledger can be held against what the provider says it served. */
const counted: Behaviour = { usage: "counted" };

type Outcome = {
  status: number;
  text: string;
  error?: { code: string; details?: unknown };
  finishReason?: string;
  headers: Record<string, unknown>;
};

for (const provider of ["openai", "anthropic"] as const) {
  describe(`faults of ${provider}`, () => {
    let fake: FakeProvider;
    let test: TestPlatform;
    let client: ApiClient;
    let surfaces = 0;
    before(async function () {
      this.timeout(60_000);
      fake = await startFakeProvider();
      test = await startPlatform({
        workers: false,
        env: {
          OPENAI_API_KEY: "sk-platform-openai",
          OPENAI_BASE_URL: fake.url,
          ANTHROPIC_API_KEY: "sk-ant-platform",
          ANTHROPIC_BASE_URL: fake.origin,
          PROVIDER_FIRST_BYTE_TIMEOUT_MS: "300",
          PROVIDER_ANSWER_TIMEOUT_MS: "300",
          PROVIDER_IDLE_TIMEOUT_MS: "150",
        },
      });
      client = makeClient({ url: test.url, key: test.keys.member });
    });
    after(async () => {
      await test.close();
      await fake.close();
    });

    /** One call, and that the ledger's counters of it are what the provider served, to the token. */
    const ask = async (isStreamed: boolean, ...behaviours: Behaviour[]): Promise<Outcome> => {
      fake.reset();
      fake.setDefault(counted);
      fake.next(...behaviours.map((one) => ({ ...counted, ...one })));
      const surface = `faults-${++surfaces}`;
      const body = { messages, model: models[provider], stream: isStreamed };
      const headers = { "x-svc-surface": surface };
      const response = await postRaw(`${test.url}/ai/chat`, { key: test.keys.member, body, headers });
      const outcome = toOutcome(response);
      return Object.assign(outcome, { usage: await usageOf(surface) });
    };
    const usageOf = (surface: string): Promise<Record<string, number>> =>
      pollUntil(async () => {
        const rows = (await client.get("/usage?groupBy=surface")).at("data");
        return Array.isArray(rows) ? rows.find((row) => row.surface === surface) : undefined;
      });
    const expectServed = (outcome: Outcome) => {
      const { inputTokens, outputTokens } = fake.served();
      expect(outcome).to.have.property("usage").that.includes({ inputTokens, outputTokens });
    };
    /** A good call between, so that one test's failures do not open the breaker in the next. */
    const heal = () => ask(false);

    for (const isStreamed of [false, true]) {
      const kind = isStreamed ? "streamed" : "JSON";
      const askKind = (...behaviours: Behaviour[]) => ask(isStreamed, ...behaviours);

      it(`waits as long as 429 asks, and retries (${kind})`, async () => {
        const startedAt = performance.now();
        const outcome = await askKind({ status: 429, headers: { "retry-after": "1" } });
        expect([outcome.status, outcome.text]).to.deep.equal([200, answer]);
        expect(performance.now() - startedAt).to.be.greaterThan(950);
        expect(fake.requests).to.have.length(2);
        expectServed(outcome);
      });

      it(`does not wait for a minute, but passes the wait on (${kind})`, async () => {
        const outcome = await askKind({ status: 429, headers: { "retry-after": "60" } });
        expect([outcome.status, outcome.error?.code]).to.deep.equal([429, "provider_rate_limited"]);
        expect(outcome.headers["retry-after"]).to.equal("60");
        expect(fake.requests).to.have.length(1);
        expectServed(outcome);
      });

      it(`retries an overloaded provider, three attempts at most (${kind})`, async () => {
        const overloaded = { status: 529, errorCode: "overloaded_error" };
        const passed = await askKind(overloaded, overloaded);
        expect([passed.status, passed.text]).to.deep.equal([200, answer]);
        expectServed(passed);
        const failed = await askKind(overloaded, overloaded, overloaded, overloaded);
        expect([failed.status, failed.error?.code]).to.deep.equal([502, "provider_failed"]);
        const provider = "The fake provider was told to fail.";
        expect(failed.error?.details).to.deep.equal({ status: 529, code: "overloaded_error", provider });
        expect(fake.requests).to.have.length(3);
        expectServed(failed);
        await heal();
      });

      it(`retries after 500 and after a reset connection (${kind})`, async () => {
        const outcome = await askKind({ status: 500 }, { fault: { type: "reset" } });
        expect([outcome.status, outcome.text]).to.deep.equal([200, answer]);
        expect(fake.requests).to.have.length(3);
        expectServed(outcome);
      });

      it(`gives up on a provider whose first byte does not come (${kind})`, async () => {
        const outcome = await askKind({ firstByteMs: 20_000 });
        expect([outcome.status, outcome.error?.code]).to.deep.equal([504, "provider_timeout"]);
        expect(fake.requests, "silence is not tried again").to.have.length(1);
        await heal();
      });

      it(`reports a filtered answer, a refusal and a limit (${kind})`, async () => {
        const filtered = await askKind({ finishReason: "content_filter" });
        expect(filtered).to.include({ text: answer, finishReason: "content_filter" });
        expectServed(filtered);
        const refused = await askKind({ isRejection: true, pieces: ["I cannot ", "help."] });
        expect(refused.text).to.equal("I cannot help.");
        expect(refused.finishReason).to.equal(provider === "anthropic" ? "content_filter" : "stop");
        expectServed(refused);
        expect(await askKind({ finishReason: "length" })).to.include({ text: answer, finishReason: "length" });
      });

      it(`counts tokens itself when no usage is reported (${kind})`, async () => {
        const outcome = await askKind({ usage: false });
        expect(outcome.status).to.equal(200);
        expectServed(outcome);
      });

      it(`rejects a response that is not one (${kind})`, async () => {
        const nonsense = { rawBody: "<html>hello</html>" };
        const outcome = await askKind(nonsense, nonsense, nonsense);
        expect([outcome.status, outcome.error?.code]).to.deep.equal([502, "provider_failed"]);
        await heal();
      });
    }

    it("retries a JSON response that breaks off or is cut short", async () => {
      const cut = await ask(false, { fault: { type: "cut", afterPieces: 0 } });
      expect([cut.status, cut.text, fake.requests.length]).to.deep.equal([200, answer, 2]);
      const malformed = await ask(false, { fault: { type: "malformed", afterPieces: 0 } });
      expect([malformed.status, malformed.text, fake.requests.length]).to.deep.equal([200, answer, 2]);
    });

    it("ends a stream that breaks in the middle with an error event, and charges what was served", async () => {
      for (const type of ["cut", "short", "stall", "malformed", "error-event"] as const) {
        const outcome = await ask(true, { fault: { type, afterPieces: 2 } });
        expect([outcome.status, outcome.text], type).to.deep.equal([200, "The lease protects "]);
        expect(outcome.error?.code, type).to.equal(type === "stall" ? "provider_timeout" : "provider_failed");
        expect(fake.requests, "never after the first token").to.have.length(1);
        expectServed(outcome);
        await heal();
      }
    });

    it("retries a stream that breaks before its first token", async () => {
      for (const type of ["cut", "short", "malformed", "error-event"] as const) {
        const outcome = await ask(true, { fault: { type, afterPieces: 0 } });
        expect([outcome.status, outcome.text, fake.requests.length], type).to.deep.equal([200, answer, 2]);
      }
    });

    it("stops calling a provider that always cuts its streams, and resumes when it recovers", async () => {
      const cut: Behaviour = { fault: { type: "cut", afterPieces: 1 } };
      for (let n = 0; n < 5; n++) expect((await ask(true, cut)).error?.code).to.equal("provider_failed");
      const refused = await ask(true);
      expect([refused.status, refused.error?.details]).to.deep.equal([502, { code: "breaker_open" }]);
      expect(fake.requests).to.have.length(0);
      await pollUntil(async () => (await ask(true)).status === 200);
      expect((await ask(true)).status).to.equal(200);
    });
  });
}

/** What a caller sees of either kind of answer, in the same terms. */
function toOutcome({
  status,
  headers,
  text,
}: {
  status: number;
  headers: Record<string, unknown>;
  text: string;
}): Outcome {
  if (!String(headers["content-type"]).startsWith("text/event-stream")) {
    const body = JSON.parse(text);
    return { status, headers, text: body.text ?? "", error: body.error, finishReason: body.choices?.[0].finish_reason };
  }
  const events = parseDataLines(text) as Record<string, never>[]; // each event's fields are asked for by name
  const last = events.at(-1) ?? {};
  const said = events.map((event) => (event.delta as { content: string } | undefined)?.content ?? "").join("");
  return {
    status,
    headers,
    text: said,
    ...(last.error === undefined ? {} : { error: last.error }),
    ...(last.finishReason === undefined ? {} : { finishReason: last.finishReason }),
  };
}
