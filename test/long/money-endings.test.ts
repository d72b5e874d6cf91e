import { expect } from "chai";
import OpenAI, { toFile } from "openai";
import { type FakeBatches, startFakeBatches } from "../support/fake-provider/batch-server.ts";
import type { Behaviour, FakeUsage } from "../support/fake-provider/behaviour.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

/** Billionths of a USD a token, as the providers' price lists have them. */
const prices = {
  "gpt-5.4-nano": { input: 200, cached: 20, written: 200, output: 1_250 },
  "gpt-6-astra": { input: 10_000, cached: 1_000, written: 12_500, output: 50_000 },
  "claude-haiku-5-5": { input: 100, cached: 10, written: 125, output: 500 },
  "gpt-6-luna": { input: 100, cached: 10, written: 125, output: 500 },
  "text-embedding-3-small": { input: 20, cached: 20, written: 20, output: 0 },
};

/** Fewer than a tenant may name in a day. */
const SURFACES = 90;

/** A way to ask for an answer. Embeddings have no streams. */
type Kind = "json" | "stream" | "embeddings";
type Call = { name: string; path: string; kind: Kind; model: string; tools?: object[] };

const tools = [{ type: "function", function: { name: "find", parameters: { type: "object" } } }];

const calls: Call[] = [
  ...(["json", "stream"] as const).flatMap((kind) => [
    { name: `chat of OpenAI, ${kind}`, path: "/ai/chat", kind, model: "gpt-5.4-nano" },
    { name: `chat of OpenAI with tools while reasoning, ${kind}`, path: "/ai/chat", kind, model: "gpt-6-astra", tools },
    { name: `chat of Anthropic, ${kind}`, path: "/ai/chat", kind, model: "claude-haiku-5-5" },
    { name: `chat by OpenAI's surface, ${kind}`, path: "/v1/chat/completions", kind, model: "gpt-5.4-nano" },
  ]),
  ...["/ai/embeddings", "/v1/embeddings"].map((path) => ({
    name: `embeddings at ${path}`,
    path,
    kind: "embeddings" as const,
    model: "text-embedding-3-small",
  })),
];

const pieces = ["The lease ", "protects a job ", "that a worker ", "has taken up."];
/** Numbers that nobody else could come to, parts of them at other prices. */
const reportedUsage: FakeUsage = {
  prompt_tokens: 137,
  completion_tokens: 41,
  cached_tokens: 64,
  cache_write_tokens: 24,
};
const reported: Behaviour = { pieces, usage: reportedUsage };
/** The provider counts as the gateway does: for responses whose usage it cannot report any more. */
const counted: Behaviour = { pieces, usage: "counted" };
type FaultType = "cut" | "stall" | "malformed" | "short" | "error-event";
const at = (afterPieces: number, type: FaultType): Behaviour => ({ ...counted, fault: { type, afterPieces } });
const overloaded: Behaviour = { status: 529, errorCode: "overloaded_error" };
const limited: Behaviour = { status: 429, headers: { "retry-after": "4" } };
const reset: Behaviour = { fault: { type: "reset" } };
const silent: Behaviour = { ...counted, firstByteMs: 20_000 };
const thrice = (one: Behaviour) => [one, one, one];

type Ending = {
  name: string;
  /** The kinds of calls that can end so. */
  kinds: readonly Kind[];
  /** What the provider does to one request after the other; there are no more of them. */
  provider: readonly Behaviour[];
  /** The status that the client sees, or when it leaves. */
  end: number | Leave;
};
/** When the client leaves: the provider has the request; it has sent a part; it has refused, and a next try is waited for. */
type Leave = "leaves asked" | "leaves begun" | "leaves refused";
const all: Kind[] = ["json", "stream", "embeddings"];
const whole: Kind[] = ["json", "embeddings"];
const ending = (name: string, kinds: readonly Kind[], provider: readonly Behaviour[], end: Ending["end"]): Ending => ({
  name,
  kinds,
  provider,
  end,
});

/**
 * Why a kind of call is missing: a stream is not tried again after its first token, since its client has that; JSON and
 * embeddings are, since nobody has seen any of them. An error cannot follow the beginning of JSON, whose status is sent
 * before: it can only break off or not fit. Embeddings have no cache and no fallbacks (another model's vectors mean
 * something else), and a batch is not streamed.
 */
const endings: Ending[] = [
  ending("ended", all, [reported], 200),
  ending("ended without a usage", all, [{ pieces, usage: false }], 200),
  ending("client gone before the first token", all, [silent], "leaves asked"),
  ending("client gone in the middle", all, [at(2, "stall")], "leaves begun"),
  ending("client gone before the next try", all, [limited], "leaves refused"),
  ending("client gone in the second try", all, [at(0, "cut"), silent], "leaves asked"),
  ending("upstream cut before each answer", all, thrice(reset), 502),
  ending("upstream cut in the middle of each answer", whole, thrice(at(2, "cut")), 502),
  ending("upstream cut in the middle", ["stream"], [at(2, "cut")], 200),
  ending("upstream cut before each first token", ["stream"], thrice(at(0, "cut")), 502),
  ending("upstream ends in the middle", ["stream"], [at(3, "short")], 200),
  ending("upstream error after tokens", ["stream"], [at(2, "error-event")], 200),
  ending("upstream error before each first token", ["stream"], thrice(at(0, "error-event")), 502),
  ending("upstream error instead of each answer", all, thrice(overloaded), 502),
  ending("upstream refusal", all, [{ status: 400, errorMessage: "no" }], 400),
  ending("bad body after tokens", ["stream"], [at(2, "malformed")], 200),
  ending("bad body, a part of each answer", whole, thrice(at(2, "malformed")), 502),
  ending("bad body, no part of an answer", all, thrice({ rawBody: "<html>gateway</html>" }), 502),
  // Silence is not tried again: it has cost the whole limit.
  ending("time-out before the first token", all, [silent], 504),
  ending("time-out in the middle of an answer", whole, [at(2, "stall")], 504),
  ending("time-out after tokens", ["stream"], [at(2, "stall")], 200),
  ending("retry after refusals, then success", all, [overloaded, reset, reported], 200),
  ending("retry after a cut, then success", all, [at(0, "cut"), reported], 200),
  ending("retry after two parts of an answer, then success", whole, [at(2, "cut"), at(3, "malformed"), reported], 200),
];

describe("the ledger records what the provider served", function () {
  this.timeout(60_000);
  let fake: FakeProvider;
  /** The platform of what ends by itself, and one with short limits for what ends by them, which a busy machine may exceed. */
  let patient: TestPlatform;
  let hasty: TestPlatform;
  let test: TestPlatform;
  let client: ApiClient;
  let surfaces = 0;
  const start = async (limits: Record<string, string>) => {
    const started = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-platform-0123456789abcdef",
        OPENAI_BASE_URL: fake.url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789abc",
        ANTHROPIC_BASE_URL: fake.origin,
        ...limits,
      },
    });
    await started.platform.gateway.setBudget(await tenantOf(started), 1_000);
    return started;
  };
  const use = (platform: TestPlatform) => {
    test = platform;
    client = makeClient({ url: test.url, key: test.keys.member });
  };
  before(async () => {
    fake = await startFakeProvider();
    patient = await start({});
    hasty = await start({
      PROVIDER_FIRST_BYTE_TIMEOUT_MS: "400",
      PROVIDER_ANSWER_TIMEOUT_MS: "400",
      PROVIDER_IDLE_TIMEOUT_MS: "400",
    });
  });
  after(async () => {
    await patient.close();
    await hasty.close();
    await fake.close();
  });

  /** Runs a call to its end, or to the moment when its client leaves; the status that was seen. */
  const run = async (call: Call, surface: string, end: Ending["end"], options?: string): Promise<Ending["end"]> => {
    const leaving = new AbortController();
    const answered = fetch(`${test.url}${call.path}`, {
      method: "POST",
      signal: leaving.signal,
      headers: {
        authorization: `Bearer ${test.keys.member}`,
        "content-type": "application/json",
        "x-svc-surface": surface,
        ...(options === undefined ? {} : { "x-svc-options": options }),
      },
      body: JSON.stringify(toBody(call, surface)),
    });
    if (typeof end === "number") {
      const response = await answered;
      await response.text();
      return response.status;
    }
    if (call.kind === "stream" && end === "leaves begun") await readUntil(await answered, "protects a job ");
    else await pollUntil(() => isTimeToLeave(end), { what: end });
    leaving.abort();
    await answered.then((response) => response.text()).catch(() => undefined);
    return end;
  };
  let expectedRequests = 0;
  const isTimeToLeave = async (leave: Leave) => {
    if (fake.requests.length < expectedRequests) return false;
    const last = fake.requests.at(-1);
    if (leave === "leaves refused") return (await last?.ended) === "completed";
    return leave === "leaves asked" || last?.hasBegun === true;
  };

  const leftUsd = async () => {
    await test.platform.gateway.flush();
    return Number((await client.get("/usage")).at("budget.leftUsd"));
  };
  const rowOf = async (surface: string) => {
    const rows = (await client.get("/usage?groupBy=surface")).at("data");
    const row = Array.isArray(rows) ? rows.find((one) => one.surface === surface) : undefined;
    const { requests = 0, inputTokens = 0, outputTokens = 0, costUsd = 0 } = row ?? {};
    return { requests, inputTokens, outputTokens, costNanoUsd: toNano(costUsd) };
  };
  /** What a surface has used since it had that row. */
  const usedSince = async (surface: string, earlier: Awaited<ReturnType<typeof rowOf>>, requests: number) => {
    const hasRecord = async () => {
      const row = await rowOf(surface);
      return row.requests >= earlier.requests + requests ? row : undefined;
    };
    const row = await pollUntil(hasRecord, { what: "the record of the call" });
    return {
      requests: row.requests - earlier.requests,
      inputTokens: row.inputTokens - earlier.inputTokens,
      outputTokens: row.outputTokens - earlier.outputTokens,
      nanoUsd: row.costNanoUsd - earlier.costNanoUsd,
    };
  };
  /** What the provider says: tokens, and their price. */
  const served = async () => {
    await Promise.all(fake.requests.map(({ ended }) => ended));
    const { inputTokens, outputTokens } = fake.served();
    const nanoUsd = fake.requests.reduce((sum, request) => sum + toNanoUsd(request.body.model, request.served), 0);
    return { inputTokens, outputTokens, nanoUsd };
  };
  /** Runs calls against a provider that behaves so; then the ledger and the budget must have what it served. */
  const expectServed = async (
    provider: readonly Behaviour[],
    records: number,
    calling: (surface: string) => Promise<void>,
  ) => {
    fake.reset();
    fake.next(...provider);
    expectedRequests = provider.length;
    const before = await leftUsd();
    const surface = `ending-${++surfaces % SURFACES}`;
    const earlier = await rowOf(surface);
    await calling(surface);
    const { requests, ...used } = await usedSince(surface, earlier, records);
    expect(fake.requests, "requests of the provider").to.have.length(provider.length);
    expect(used).to.deep.equal(await served());
    expect(requests, "records").to.equal(records);
    expect(toNano(before - (await leftUsd())), "taken from the budget").to.equal(used.nanoUsd);
  };
  /** A good call of each model, so that its breaker forgets the failures. */
  const heal = async () => {
    fake.reset();
    for (const call of new Map(calls.map((one) => [one.model, one])).values())
      expect(await run(call, "heal", 200)).to.equal(200);
  };

  for (const { name, kinds, provider, end } of endings) {
    describe(name, () => {
      before(() => use(endsByLimit(provider, end) ? hasty : patient));
      afterEach(heal);
      // A surface is where a client leaves or reads parts; of what ends before an answer it sees a status alone.
      const isAtProvider = typeof end === "number" && (end !== 200 || provider.length > 1);
      const ways = calls.filter(({ kind, path }) => kinds.includes(kind) && !(isAtProvider && path.startsWith("/v1")));
      for (const call of ways) {
        it(call.name, async () => {
          const isPromptReported = call.kind === "stream" && call.model.startsWith("claude");
          const behaviours = isPromptReported ? provider.map(withPromptReported) : provider;
          await expectServed(behaviours, 1, async (surface) => {
            expect(await run(call, surface, end)).to.equal(end);
          });
        });
      }
    });
  }

  for (const kind of ["json", "stream"] as const) {
    describe(`fallback, ${kind}`, () => {
      before(() => use(patient));
      afterEach(heal);
      const auto: Call = { name: "auto", path: "/ai/chat", kind, model: "auto" };
      it("is charged at both models, a record each", async () => {
        const lost = kind === "stream" ? withPromptReported(at(0, "cut")) : at(2, "cut");
        await expectServed([overloaded, lost, reported], 2, async (surface) => {
          expect(await run(auto, surface, 200)).to.equal(200);
        });
      });
      it("is charged at both when its client leaves the fallback", async () => {
        await expectServed([overloaded, at(0, "malformed"), silent], 2, async (surface) => {
          await run(auto, surface, "leaves asked");
        });
      });
    });

    describe(`cache hit, ${kind}`, () => {
      before(() => use(hasty));
      afterEach(heal);
      // OpenAI's surface has no options.
      for (const call of calls.filter((one) => one.kind === kind && one.path === "/ai/chat")) {
        it(`costs nothing: ${call.name}`, async () => {
          await expectServed([reported], 2, async (surface) => {
            expect(await run(call, surface, 200, "cache=true")).to.equal(200);
            expect(await run(call, surface, 200, "cache=true")).to.equal(200);
          });
        });
        it(`is charged once when two wait for one call: ${call.name}`, async () => {
          const end = kind === "stream" ? 200 : 504;
          await expectServed([{ ...at(2, "stall") }], 2, async (surface) => {
            const both = [run(call, surface, end, "cache=true"), run(call, surface, end, "cache=true")];
            expect(await Promise.all(both)).to.deep.equal([end, end]);
          });
        });
      }
    });
  }
});

/** Whether nobody but a limit of the platform ends a call. */
const endsByLimit = (provider: readonly Behaviour[], end: Ending["end"]) =>
  end === 504 || (typeof end === "number" && provider.some(({ fault }) => fault?.type === "stall"));

/** What a line of a batch can come to, and what its job then says. */
const lineEndings = {
  "What is a lease?": "completed",
  "FAIL: it is refused": "failed",
  "EXPIRE-ONCE: answered by the next batch": "completed",
  "EXPIRE: by both batches": "failed",
};

describe("the ledger records what the provider served of a batch, at half the price", function () {
  this.timeout(60_000);
  let batches: FakeBatches;
  let edge: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  before(async () => {
    batches = await startFakeBatches();
    edge = await startFakeProvider();
    test = await startPlatform({
      env: {
        OPENAI_API_KEY: "sk-platform-0123456789abcdef",
        OPENAI_BASE_URL: batches.url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789abc",
        ANTHROPIC_BASE_URL: batches.origin,
        EDGE_BASE_URL: edge.url,
        EDGE_MODEL: "default",
        EDGE_EMBEDDING_MODEL: "edge-embedding",
        BATCH_COLLECT_MS: "50",
        BATCH_POLL_MS: "50",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await test.close();
    await edge.close();
    await batches.close();
  });

  const row = async (surface: string) => {
    await test.platform.gateway.flush();
    const rows = (await client.get("/usage?groupBy=surface")).at("data");
    return Array.isArray(rows) ? rows.find((one) => one.surface === surface) : undefined;
  };
  const runLine = async (model: string, content: string): Promise<string> => {
    const body = { model, prefer_async: true, messages: [{ role: "user", content }] };
    const accepted = await client.post("/ai/chat", body, { headers: { "x-svc-surface": `batch-${model}` } });
    const status = async () => (await client.get(accepted.string("statusUrl"))).string("status");
    const isOver = async () => ["completed", "failed"].includes(await status());
    await pollUntil(isOver, { what: "the end of the line" });
    return status();
  };

  for (const model of ["gpt-5.4-nano", "claude-haiku-5-5"]) {
    it(`a chat of ${model}`, async () => {
      const before = batches.served();
      const statuses = await Promise.all(Object.keys(lineEndings).map((content) => runLine(model, content)));
      expect(statuses).to.deep.equal(Object.values(lineEndings));
      const { inputTokens, outputTokens } = batches.served();
      const served = {
        prompt_tokens: inputTokens - before.inputTokens,
        completion_tokens: outputTokens - before.outputTokens,
      };
      const usage = await row(`batch-${model}`);
      expect(usage).to.include({
        requests: 4,
        inputTokens: served.prompt_tokens,
        outputTokens: served.completion_tokens,
      });
      expect(toNano(usage.costUsd)).to.equal(toNanoUsd(model, served) / 2);
    });
  }

  it("a chat of the platform's own server, which our workers ask", async () => {
    edge.reset();
    edge.next(overloaded, at(2, "cut"), reported);
    expect(await runLine("meta-llm", "What is a lease?")).to.equal("completed");
    edge.next(...thrice(at(2, "malformed")));
    expect(await runLine("meta-llm", "What is a lease?")).to.equal("failed");
    const { inputTokens, outputTokens } = edge.served();
    expect(await row("batch-meta-llm")).to.include({ requests: 2, inputTokens, outputTokens, costUsd: 0 });
  });

  it("embeddings of a file, which are made at once", async () => {
    edge.reset();
    edge.next({ status: 400 }, reported);
    const body = { model: "edge-embedding", input: ["What does a lease protect?"] };
    const lines = ["one", "two"].map((id) => ({ custom_id: id, method: "POST", url: "/v1/embeddings", body }));
    const openai = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
    const file = await openai.files.create({
      purpose: "batch",
      file: await toFile(Buffer.from(lines.map((line) => JSON.stringify(line)).join("\n")), "lines.jsonl"),
    });
    const window = { endpoint: "/v1/embeddings", completion_window: "24h" } as const;
    const { id } = await openai.batches.create({ input_file_id: file.id, ...window });
    const isOver = async () => {
      const { status, request_counts: counts } = await openai.batches.retrieve(id);
      return status === "completed" && counts;
    };
    const counts = await pollUntil(isOver, { what: "the end of the batch" });
    expect(counts).to.deep.equal({ total: 2, completed: 1, failed: 1 });
    const { inputTokens, outputTokens } = edge.served();
    expect(await row("openai-batch")).to.include({ requests: 2, inputTokens, outputTokens });
  });
});

/** Anthropic reports a stream's prompt at its start, so that it is known also when the rest does not come. */
function withPromptReported(behaviour: Behaviour): Behaviour {
  const hasStart = behaviour.fault !== undefined && behaviour.fault.type !== "reset";
  return hasStart ? { ...behaviour, usage: reportedUsage } : behaviour;
}

function toBody({ kind, model, tools }: Call, surface: string): object {
  if (kind === "embeddings") return { model, input: ["What does a lease protect?", "A job."] };
  const messages = [{ role: "user", content: `What does a lease protect, and for how long? (${surface})` }];
  return { model, messages, tools, stream: kind === "stream" };
}

async function readUntil(response: Response, text: string): Promise<void> {
  let seen = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    seen += decoder.decode(chunk, { stream: true });
    if (seen.includes(text)) return;
  }
  throw new Error(`the stream ended without ${text}: ${seen}`);
}

const toNano = (usd: number | undefined) => Math.round(Number(usd) * 1e9);

function toNanoUsd(model: string, usage: FakeUsage): number {
  const price = Object.entries(prices).find(([id]) => id === model)?.[1];
  if (price === undefined) throw new Error(`there is no price for ${model}`);
  const { prompt_tokens: prompt, completion_tokens: output } = usage;
  const { cached_tokens: cached = 0, cache_write_tokens: written = 0 } = usage;
  const fresh = prompt - cached - written;
  return fresh * price.input + cached * price.cached + written * price.written + output * price.output;
}
