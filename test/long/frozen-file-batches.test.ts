import { expect } from "chai";
import { itemJobIds } from "../../src/batches/file/run.ts";
import { Rescheduled } from "../../src/jobs/reschedule.ts";
import type { Work, WorkContext } from "../../src/jobs/work.ts";
import type { Platform } from "../../src/platform.ts";
import { isFinal } from "../../src/store/job-state.ts";
import { type EmbeddingServer, startEmbeddingServer, toCustomProvider, tokensOf } from "../support/embedding-server.ts";
import { batchUsage, type FakeBatches, startFakeBatches } from "../support/fake-provider/batch-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { raceWorkers } from "../support/race-workers.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf, viewerOf } from "../support/tenant-of.ts";
import { workContext } from "../support/work-context.ts";

type Line = { custom_id: string; error?: { code: string } | null; result?: { type: string } };
type Begun = { tenantId: string; recordId: string; jobId: string; isLastAttempt: boolean };

const model = "gpt-5.4-nano";
const ask = (content: string) => ({ model, max_tokens: 100, messages: [{ role: "user", content }] });
/** Of three requests, by their ids, the second cannot be answered. */
const chats = {
  first: ask("What is a lease?"),
  bad: { model, max_tokens: 100, messages: [] },
  last: ask("What is a job?"),
};
const texts = { first: { input: "a lease" }, bad: { input: [] }, last: { input: "a job" } };
const answered = 2;
const tomorrow = () => new Date(Date.now() + 86_400_000);

/** No worker of the queue runs, and no batch is closed by its time: the test does both by hand. */
describe("a file of requests that two workers run at once", () => {
  let upstream: FakeBatches;
  let embedder: EmbeddingServer;
  let test: TestPlatform;
  let member: ApiClient;
  let tenantId: string;
  /** What was asked of the provider so far, and what is kept. */
  let asked = 0;
  let keptFiles = 0;
  let keptBytes = 0;
  const platforms = new Set<Platform>();
  before(async () => {
    [upstream, embedder] = await Promise.all([startFakeBatches(), startEmbeddingServer()]);
    upstream.setDuration(0);
    const env = {
      OPENAI_API_KEY: "sk-platform-0123456789abcdef",
      OPENAI_BASE_URL: upstream.url,
      BATCH_COLLECT_MS: "3600000",
      FETCH_ALLOW_ORIGINS: new URL(embedder.url).origin,
    };
    test = await startPlatform({ workers: false, env });
    member = makeClient({ url: test.url, key: test.keys.member });
    tenantId = await tenantOf(test);
    const provider = toCustomProvider(embedder, ["dense-8"]);
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const added = await owner.request("PUT", "/ai/providers/custom/lab", { body: provider });
    expect(added.status, added.text).to.be.oneOf([200, 201]);
  });
  after(async () => {
    await test.close();
    await upstream.close();
    await embedder.close();
  });

  const upload = async (text: string) => {
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new Blob([text]), "requests.jsonl");
    return (await member.request("POST", "/v1/files", { raw: form })).string("id");
  };
  const begun = async (recordId: string): Promise<Begun> => {
    const { jobId } = await test.platform.batches.files.batch(viewerOf(tenantId), recordId);
    return { tenantId, recordId, jobId, isLastAttempt: true };
  };
  const create = async (endpoint: string, bodies: Record<string, object>) => {
    const lines = Object.entries(bodies).map(([custom_id, body]) =>
      JSON.stringify({ custom_id, method: "POST", url: endpoint, body }),
    );
    const text = lines.join("\n");
    keptFiles += 3;
    keptBytes += text.length;
    const body = { input_file_id: await upload(text), endpoint, completion_window: "24h" };
    return begun((await member.post("/v1/batches", body)).string("id"));
  };
  const createChats = () => {
    asked += answered;
    return create("/v1/chat/completions", chats);
  };
  const createMessages = async () => {
    asked += answered;
    const requests = Object.entries(chats).map(([custom_id, params]) => ({ custom_id, params }));
    return begun((await member.post("/v1/messages/batches", { requests })).string("id"));
  };
  /** Whether a run ended; false: it is to be run again later. */
  const runOnce = async (work: Work, begun: Begun) => {
    try {
      await work.run(workContext(test, begun));
      return true;
    } catch (error) {
      if (!(error instanceof Rescheduled)) throw error;
      return false;
    }
  };
  const runBatches = async ({ batches, store }: Platform) => {
    for (const { _id } of await store.batches.overdue(["collecting", "closed", "submitted"], tomorrow(), 10))
      await runOnce(batches.chats.work, { tenantId: "", recordId: _id, jobId: "", isLastAttempt: true });
  };
  /** Runs the file, and the batches of providers that its lines are in, until it has ended, or waits for another worker. */
  const runToEnd = async (platform: Platform, begun: Begun) => {
    for (let turn = 0; turn < 5; turn += 1) {
      if (await runOnce(platform.batches.files.work, begun)) return true;
      await runBatches(platform);
    }
    return false;
  };
  const read = (bytes: Buffer): Line[] => {
    keptBytes += bytes.length;
    const lines = bytes.toString("utf8").trimEnd().split("\n");
    return lines.map((text) => JSON.parse(text));
  };
  /** Every line has its answer once, and the files are counted once. */
  const expectFiles = async ({ recordId }: Begun, when: string) => {
    const { content } = test.platform.batches.files;
    const batch = await member.get(`/v1/batches/${recordId}`);
    expect(batch.at("status"), when).to.equal("completed");
    expect(batch.at("request_counts"), when).to.deep.equal({ total: 3, completed: answered, failed: 1 });
    const outputs = read(await content(tenantId, batch.string("output_file_id")));
    expect(
      outputs.map((one) => one.custom_id),
      when,
    ).to.deep.equal(["first", "last"]);
    const errors = read(await content(tenantId, batch.string("error_file_id")));
    expect(
      errors.map((one) => [one.custom_id, one.error?.code]),
      when,
    ).to.deep.equal([["bad", "invalid_request"]]);
  };
  const expectResults = async ({ recordId }: Begun, when: string) => {
    const { batch, results } = test.platform.batches.files;
    const counts = { status: "completed", completed: answered, failed: 1, expired: 0 };
    expect(await batch(viewerOf(tenantId), recordId), when).to.include(counts);
    const { pieces } = await results(viewerOf(tenantId), recordId);
    const lines = read(Buffer.concat(await Array.fromAsync(pieces)));
    const ends = lines.map(({ custom_id, result }) => [custom_id, result?.type]);
    expect(ends, when).to.deep.equal([
      ["first", "succeeded"],
      ["bad", "errored"],
      ["last", "succeeded"],
    ]);
  };
  /** Each chat was sent once, each answer is charged once, and what is kept is counted once. */
  const expectCounted = async (when: string) => {
    expect([...upstream.submitted.values()], when).to.deep.equal(Array(asked).fill(1));
    for (const { gateway } of platforms) await gateway.flush();
    const { requests, inputTokens } = (await member.get("/usage")).at("total") as Record<string, number>;
    const embedded = tokensOf(embedder.answered.flatMap((one) => one.texts));
    const served = [asked + embedder.answered.length, asked * batchUsage.input + embedded];
    expect([requests, inputTokens], when).to.deep.equal(served);
    const { storedBytes, files } = await test.platform.quotas.usage(tenantId);
    expect([files.used, storedBytes.used], when).to.deep.equal([keptFiles, keptBytes]);
  };
  /**
   * `begin`: what is done before; `run`: what one of them does until it is frozen, while the other does all that is left;
   * `expectEnd`: what is looked at then.
   */
  const race = (
    begin: () => Promise<Begun>,
    run: (begun: Begun) => Promise<unknown>,
    { expectEnd = expectFiles, every = 1 } = {},
  ) =>
    raceWorkers({
      test,
      every,
      begin,
      work: (platform) => {
        platforms.add(platform);
        const runIt = async ({ recordId, jobId }: WorkContext) => {
          const given = { tenantId, recordId, jobId, isLastAttempt: true };
          return platform === test.platform ? run(given) : runToEnd(platform, given);
        };
        return { ...platform.batches.files.work, run: runIt };
      },
      check: async (given, { frozen }, at) => {
        const when = `frozen at ${at}`;
        if (frozen instanceof Error) throw new Error(when, { cause: frozen });
        // While one of them may be about to submit a batch, the other waits.
        await runToEnd(test.platform, given);
        await expectEnd(given, when);
        await expectCounted(when);
      },
    });
  const runFile = (given: Begun) => runOnce(test.platform.batches.files.work, given);
  /** As `create`, with what is done until all have their answers. */
  const answer = async (create: () => Promise<Begun>) => {
    const given = await create();
    await runFile(given);
    await runBatches(test.platform);
    return given;
  };

  it("begins its lines once", async () => {
    expect(await race(createChats, runFile)).to.be.above(15);
  });

  it("sends and answers its lines once", async () => {
    const begin = async () => {
      const given = await createChats();
      await runFile(given);
      return given;
    };
    expect(await race(begin, () => runBatches(test.platform), { every: 3 })).to.be.above(20);
  });

  it("writes its answers once", async () => {
    expect(await race(() => answer(createChats), runFile)).to.be.above(15);
  });

  it("writes the results of messages once", async () => {
    expect(await race(() => answer(createMessages), runFile, { expectEnd: expectResults })).to.be.above(10);
  });

  it("charges each embedding that was made", async () => {
    const bodies = Object.fromEntries(
      Object.entries(texts).map(([id, body]) => [id, { model: "lab/dense-8", ...body }]),
    );
    expect(await race(() => create("/v1/embeddings", bodies), runFile, { every: 3 })).to.be.above(15);
  });

  it("sends no line of a file that is cancelled meanwhile", async () => {
    const sent = upstream.submitted.size;
    const commands = await raceWorkers({
      test,
      begin: () => create("/v1/chat/completions", chats),
      work: (platform) => {
        const { work } = platform.batches.files;
        const run = async (context: WorkContext) => {
          const given = { tenantId, recordId: context.recordId, jobId: context.jobId, isLastAttempt: true };
          if (platform === test.platform) return runOnce(work, given);
          expect((await member.post(`/v1/batches/${given.recordId}/cancel`)).status).to.equal(200);
          return runToEnd(platform, given);
        };
        return { ...work, run };
      },
      every: 2,
      check: async (given, { frozen, other }, at) => {
        const when = `frozen at ${at}`;
        if (frozen instanceof Error) throw new Error(when, { cause: frozen });
        if (!other) await member.post(`/v1/batches/${given.recordId}/cancel`); // none of them was frozen
        await runToEnd(test.platform, given);
        await runBatches(test.platform);
        const batch = await test.platform.batches.files.batch(viewerOf(tenantId), given.recordId);
        expect(batch.status, when).to.equal("cancelled");
        const states = (await test.platform.store.jobs.statesOf(tenantId, itemJobIds(batch))).values();
        expect([...states].every(isFinal), `no line waits, ${when}`).to.equal(true);
        expect(upstream.submitted.size, when).to.equal(sent);
      },
    });
    expect(commands).to.be.above(15);
  });

  it("begins no further line of a file that is cancelled meanwhile", async () => {
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`line-${n}`, ask(`What is ${n}?`)]));
    await raceWorkers({
      test,
      begin: () => create("/v1/chat/completions", many),
      work: (platform) => {
        const { work } = platform.batches.files;
        if (platform === test.platform) return work;
        const cancel = async ({ recordId }: WorkContext) => member.post(`/v1/batches/${recordId}/cancel`);
        return { ...work, run: cancel };
      },
      ...{ upTo: 6, every: 3 },
      check: async ({ recordId }, _ends, at) => {
        const batch = await test.platform.batches.files.batch(viewerOf(tenantId), recordId);
        const states = await test.platform.store.jobs.statesOf(tenantId, itemJobIds(batch));
        expect(states.size, `frozen at ${at}`).to.be.at.most(16);
      },
    });
  });
});
